"""SGLang's sparse attention of prompts on FP8 queries and keys, one scale each, for 64 heads or 128."""
import torch

from flashmla import PREFILL, WINDOW, attention
from peer import DEVICE, ffi_module, main

LENGTH = 131072


def prefill(dispatch, case):
    rows, heads, width = case["tokens"], case["heads"], case["head_dim"]
    scale, count = width**-0.5, WINDOW + case["selected_count"]
    keys = torch.randn(LENGTH, 1, width, device=DEVICE).to(torch.float8_e4m3fn)
    q = torch.randn(rows, heads, width, device=DEVICE).to(torch.float8_e4m3fn)
    at = torch.randint(0, LENGTH, (rows, 1, count), device=DEVICE, dtype=torch.int32)
    out = torch.full(q.shape, float("nan"), device=DEVICE, dtype=torch.bfloat16)
    most, lse = (torch.empty(rows, heads, device=DEVICE) for _ in range(2))
    one = torch.ones(1, device=DEVICE)

    def call():
        stream = torch.cuda.current_stream().cuda_stream
        dispatch(q, keys, at, one, one, out, most, lse, rows, LENGTH, heads, 1, width, width, count,
                 scale, stream)

    def check():
        some = slice(0, 4)
        call()
        return out[some], attention(q[some], keys[at[some, 0].long(), 0].float(), scale)

    return [call], check


def peers(bench):
    dispatch = ffi_module("q8kv8", "sglang_modules.py builds it")["dispatch"]
    for case in bench.cases("attn.sparse", selected_count=512):
        if case["tokens"] >= PREFILL and case["heads"] in (64, 128):
            bench.add(case, "Q8KV8 prefill", "FP8 queries and keys, no sink",
                      lambda: prefill(dispatch, case), 3e-2)


if __name__ == "__main__":
    main(peers)
