"""cuBLASLt and cuBLAS as torch calls them: nothing to install.

FP8 with one scale per tensor or per row is a relaxed contract; bf16 on expanded weights is exact.
"""
import torch

from peer import DEVICE, codes, copies, main

SCALE = 0.01


def scaled(case, rows, fast):
    """`torch._scaled_mm`, per tensor or per row and column."""
    n, k, tokens = case["n"], case["k"], case["tokens"]
    x, weight = codes(tokens, k), codes(n, k)
    weights = [weight] + [weight.clone() for _ in range(copies(n * k) - 1)]
    shape = (lambda m: (m, 1)) if rows else (lambda m: ())
    sx = torch.full(shape(tokens), SCALE, device=DEVICE)
    sw = torch.full(shape(n), SCALE, device=DEVICE)
    sw = sw.t() if rows else sw

    def call(w):
        return torch._scaled_mm(x, w.t(), sx, sw, out_dtype=torch.bfloat16, use_fast_accum=fast)

    def check():
        some = slice(0, 64)
        return call(weight)[some], (x[some].float() @ weight.float().t()) * SCALE * SCALE

    return [lambda w=w: call(w) for w in weights], check


def expanded(case, out_dtype):
    """`torch.mm` in bf16."""
    n, k, tokens = case["n"], case["k"], case["tokens"]
    x = torch.randn(tokens, k, device=DEVICE, dtype=torch.bfloat16)
    weight = torch.randn(n, k, device=DEVICE, dtype=torch.bfloat16) * 0.02
    weights = [weight] + [weight.clone() for _ in range(copies(2 * n * k) - 1)]
    options = {} if out_dtype == torch.bfloat16 else dict(out_dtype=out_dtype)

    def check():
        some = slice(0, 64)
        return torch.mm(x, weight.t(), **options)[some], x[some].float() @ weight.float().t()

    return [lambda w=w: torch.mm(x, w.t(), **options) for w in weights], check


def peers(bench):
    for case in bench.cases("gemm.mxfp8"):
        for fast in (True, False):
            name = "cuBLASLt FP8 tensor" + ("" if fast else ", precise sums")
            bench.add(case, name, "one scale per tensor", lambda: scaled(case, False, fast))
        bench.add(case, "cuBLASLt FP8 row", "one scale per row", lambda: scaled(case, True, True))
        bench.add(case, "cuBLAS bf16", "", lambda: expanded(case, torch.bfloat16))
    for case in bench.cases("gemm.bf16"):
        bench.add(case, "cuBLAS bf16", "", lambda: expanded(case, torch.bfloat16))
    for case in bench.cases("gemm.f32"):
        bench.add(case, "cuBLAS bf16", "", lambda: expanded(case, torch.float32))


if __name__ == "__main__":
    main(peers)
