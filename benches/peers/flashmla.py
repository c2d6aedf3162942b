"""FlashMLA as vLLM builds it: sparse decode over 584-byte records, and sparse prefill in bf16.

Decode takes 64 heads or 128, so fewer are padded; prefill takes keys that are bf16 already.
"""
import sys
import types

import torch

from peer import DEVICE, copies, library, main, package

PAGE, RECORD, WINDOW = 64, 584, 128
STRIDE = -(-PAGE * RECORD // 576) * 576
PREFILL = 1024  # rows from which our case is a chunk of a prompt


class Cache:
    """Random records, and what they stand for."""

    def __init__(self, blocks):
        self.blocks = blocks
        self.nope = (torch.randn(blocks, PAGE, 448, device=DEVICE) * 40).to(torch.float8_e4m3fn)
        self.rope = torch.randn(blocks, PAGE, 64, device=DEVICE).bfloat16()
        self.scale = torch.randint(120, 123, (blocks, PAGE, 8), dtype=torch.uint8, device=DEVICE)
        raw = torch.zeros(blocks, STRIDE, dtype=torch.uint8, device=DEVICE)
        data = torch.cat([self.nope.view(torch.uint8), self.rope.view(torch.uint8)], -1)
        raw[:, :PAGE * 576] = data.reshape(blocks, -1)
        raw[:, PAGE * 576:PAGE * 584] = self.scale.reshape(blocks, -1)
        self.records = torch.as_strided(raw, (blocks, PAGE, 1, RECORD), (STRIDE, RECORD, RECORD, 1))

    def values(self, at):
        block, slot = at // PAGE, at % PAGE
        scale = torch.exp2(self.scale[block, slot][..., :7].float() - 127).repeat_interleave(64, -1)
        return torch.cat([self.nope[block, slot].float() * scale, self.rope[block, slot].float()], -1)


def attention(q, keys, scale):
    p = torch.softmax(torch.einsum("rhd,rkd->rhk", q.float(), keys) * scale, -1)
    return torch.einsum("rhk,rkd->rhd", p, keys)


def decode(fm, case, window, selected):
    rows, heads, width = case["tokens"], max(case["heads"], 64), case["head_dim"]
    count, scale = case["selected_count"], width**-0.5
    meta, _ = fm.get_mla_metadata()
    sets = []
    for _ in range(copies(rows * (WINDOW + count) * RECORD, 24)):
        q = torch.randn(rows, 1, heads, width, device=DEVICE, dtype=torch.bfloat16)
        start = torch.randint(0, window.blocks * PAGE // WINDOW, (rows, 1, 1), device=DEVICE)
        near = (start * WINDOW + torch.arange(WINDOW, device=DEVICE)).int()
        far = torch.randint(0, selected.blocks * PAGE, (rows, 1, count), device=DEVICE).int()
        out = torch.full_like(q, float("nan"))
        sets.append((q, near, far, out))

    def call(one):
        q, near, far, out = one
        return fm.flash_mla_with_kvcache(
            q, window.records, None, None, width, meta, softmax_scale=scale, is_fp8_kvcache=True,
            indices=near, extra_k_cache=selected.records, extra_indices_in_kvcache=far, out=out)

    def check():
        q, near, far, _ = sets[0]
        some = slice(0, 4)
        keys = [window.values(near[some, 0].long()), selected.values(far[some, 0].long())]
        return call(sets[0])[0][some, 0], attention(q[some, 0], torch.cat(keys, 1), scale)

    return [lambda one=one: call(one) for one in sets], check


def prefill(fm, case, length=131072):
    rows, heads, width = case["tokens"], case["heads"], case["head_dim"]
    scale = width**-0.5
    keys = torch.randn(length, 1, width, device=DEVICE, dtype=torch.bfloat16)
    q = torch.randn(rows, heads, width, device=DEVICE, dtype=torch.bfloat16)
    listed = (rows, 1, WINDOW + case["selected_count"])
    at = torch.randint(0, length, listed, device=DEVICE, dtype=torch.int32)
    call = lambda: fm.flash_mla_sparse_fwd(q, keys, at, scale)

    def check():
        some = slice(0, 4)
        return call()[0][some], attention(q[some], keys[at[some, 0].long(), 0].float(), scale)

    return [call], check


def peers(bench):
    library("_flashmla_C")
    for name in ("vllm", "vllm._flashmla_C"):  # the interface file imports the names alone
        sys.modules[name] = types.ModuleType(name)
    sys.modules["vllm"].__path__ = []
    fm = package("flash_mla_interface", "vLLM's flash_mla_interface.py in TANDEM_PEERS")
    caches = None
    for case in bench.cases("attn.sparse", selected_count=512):
        if case["tokens"] >= PREFILL:
            bench.add(case, "FlashMLA prefill", "bf16 keys, no sink", lambda: prefill(fm, case), 2e-2)
            continue
        caches = caches or (Cache(2048), Cache(16384))
        bench.add(case, "FlashMLA decode", "584-byte records, no sink",
                  lambda: decode(fm, case, *caches), 2e-2)


if __name__ == "__main__":
    main(peers)
