"""Top-k over fp32 scores: torch, vLLM's three kernels, and DeepSelect."""
import functools

import torch

from peer import Absent, DEVICE, copies, ffi_module, library, main

HINT = "sglang_modules.py builds it"


def problem(case, select, dtype=torch.float32):
    """`select(scores)` gives the indices of the best."""
    rows, length, k = case["tokens"], case["entries"], case["k"]
    first = torch.randn(rows, length, device=DEVICE).to(dtype)
    scores = [first] + [first.roll(i + 1, 1) for i in range(copies(first.nbytes, 32) - 1)]

    def check():
        taken = first.float().gather(1, select(first).long().clamp(0, length - 1))
        return taken.sort(1).values, first.float().topk(k, 1).values.sort(1).values

    return [lambda s=s: select(s) for s in scores], check


def vllm(bench, case):
    """The kernels of vLLM 0.33.0 by name; the cooperative one takes up to 64 rows."""
    library("_C_stable_libtorch")
    ops, (rows, length, k) = torch.ops._C, (case["tokens"], case["entries"], case["k"])
    lengths = torch.full((rows,), length, dtype=torch.int32, device=DEVICE)
    out = torch.full((rows, k), -7, dtype=torch.int32, device=DEVICE)
    room = torch.zeros(1 << 20, dtype=torch.uint8, device=DEVICE)

    def cooperative(x):
        ops.cooperative_topk(x, lengths, out, room, k, length)
        return out

    def persistent(x):
        ops.persistent_topk(x, lengths, out, room, k, length)
        return out

    def per_row(x):
        ops.top_k_per_row_decode(x, 1, lengths, out, rows, length, 1, k)
        return out

    named = dict(cooperative=cooperative, persistent=persistent, per_row=per_row)
    for name, select in named.items():
        if name != "cooperative" or rows <= 64:
            bench.add(case, f"vLLM {name}", "", lambda: problem(case, select), 1e-6)


def deep_select(bench, case, kind):
    """SGLang's copy, built for one width; blocks of eight share a row only where rows are few."""
    rows, length, k = case["tokens"], case["entries"], case["k"]
    dtype = torch.float32 if kind == "fp32" else torch.bfloat16
    topk = ffi_module(f"ds_{kind}_{k}", HINT)["topk"]
    if kind == "bf16x8" and (rows > 16 or length <= 16384):
        return
    out = torch.full((rows, k), -7, dtype=torch.int32, device=DEVICE)

    def select(x):
        topk(x, None, out, None, None, None, None, 0, k, x.nbytes, -1, float("-inf"), False)
        return out

    contract = "" if kind == "fp32" else "bf16 scores"
    bench.add(case, f"DeepSelect {kind}", contract, lambda: problem(case, select, dtype), 1e-6)


# Whose kernels there are, and those that are built apart.
FAMILIES = {"vLLM": vllm}
FAMILIES |= {f"DeepSelect {kind}": functools.partial(deep_select, kind=kind)
             for kind in ("fp32", "bf16", "bf16x8")}


def peers(bench):
    absent = set()
    for case in bench.cases("index.top_k"):
        if "blocks=none" not in case.line:
            continue
        k = case["k"]
        best = lambda x: torch.topk(x, k, 1, sorted=False).indices
        bench.add(case, "torch.topk", "", lambda: problem(case, best), 1e-6)
        for name, family in FAMILIES.items():
            try:
                if name not in absent:
                    family(bench, case)
            except Absent as why:
                absent.add(name)
                bench.problem(f"SKIPPED {name} of top_k", str(why))


if __name__ == "__main__":
    main(peers)
