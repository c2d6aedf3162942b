"""Operations of ours as Triton has them, compiled for AMD's parts without any: kernels.py FOLDER.

Writes FOLDER/NAME.TARGET.hsaco for each, beside NAME.TARGET.lds, the bytes of LDS that a launch adds.
"""

import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

TARGETS = {"gfx942": "fp8e4b8", "gfx950": "fp8e4nv"}
THREADS = 256


@triton.jit
def linear(x, weight, y, n, k, tile_m: tl.constexpr, tile_n: tl.constexpr, tile_k: tl.constexpr):
    """y[t, n] = sum over k of x[t, k] weight[n, k]."""
    rows = tl.program_id(0) * tile_m + tl.arange(0, tile_m)
    columns = tl.program_id(1) * tile_n + tl.arange(0, tile_n)
    at = tl.arange(0, tile_k)
    left = x + rows[:, None] * k + at[None, :]
    right = weight + columns[None, :] * k + at[:, None]
    total = tl.zeros((tile_m, tile_n), tl.float32)
    for _ in range(0, k, tile_k):
        total = tl.dot(tl.load(left), tl.load(right), total)
        left += tile_k
        right += tile_k
    tl.store(y + rows[:, None] * n + columns[None, :], total.to(y.dtype.element_ty))


@triton.jit
def scaled(
    x, x_scales, weight, weight_scales, y, n, k,
    form: tl.constexpr, scale_rows: tl.constexpr,
    tile_m: tl.constexpr, tile_n: tl.constexpr, tile_k: tl.constexpr,
):  # fmt: skip
    """The same of codes with a power of two for 32 columns, the weight's for `scale_rows` of its rows."""
    per_byte: tl.constexpr = 2 if form == "e2m1" else 1
    rows = tl.program_id(0) * tile_m + tl.arange(0, tile_m)
    columns = tl.program_id(1) * tile_n + tl.arange(0, tile_n)
    at, packed, block = tl.arange(0, tile_k), tl.arange(0, tile_k // per_byte), tl.arange(0, tile_k // 32)
    left = x + rows[:, None] * k + at[None, :]
    right = weight + columns[None, :] * (k // per_byte) + packed[:, None]
    left_scales = x_scales + rows[:, None] * (k // 32) + block[None, :]
    right_scales = weight_scales + (columns // scale_rows)[:, None] * (k // 32) + block[None, :]
    total = tl.zeros((tile_m, tile_n), tl.float32)
    for _ in range(0, k, tile_k):
        total = tl.dot_scaled(
            tl.load(left), tl.load(left_scales), "e4m3", tl.load(right), tl.load(right_scales), form, total
        )
        left += tile_k
        right += tile_k // per_byte
        left_scales += tile_k // 32
        right_scales += tile_k // 32
    tl.store(y + rows[:, None] * n + columns[None, :], total.to(y.dtype.element_ty))


@triton.jit
def softmax(x, y, width, most: tl.constexpr):
    """A row of f32 a block."""
    at = tl.arange(0, most)
    row = tl.load(x + tl.program_id(0) * width + at, mask=at < width, other=-float("inf"))
    powers = tl.exp(row - tl.max(row, axis=0))
    tl.store(y + tl.program_id(0) * width + at, powers / tl.sum(powers, axis=0), mask=at < width)


@triton.jit
def norm(x, weight, y, width, eps, most: tl.constexpr):
    """A row of bf16 a block, normed by its mean square."""
    at = tl.arange(0, most)
    row = tl.load(x + tl.program_id(0) * width + at, mask=at < width, other=0).to(tl.float32)
    mean = tl.div_rn(tl.sum(row * row, axis=0), width.to(tl.float32)) + eps
    factor = tl.div_rn(1.0, tl.sqrt_rn(mean))
    scale = tl.load(weight + at, mask=at < width, other=0).to(tl.float32)
    tl.store(y + tl.program_id(0) * width + at, (scale * (row * factor)).to(tl.bfloat16), mask=at < width)


def compile_one(folder, name, target, kernel, types, constants, **options):
    signature = dict(types, **{constant: "constexpr" for constant in constants})
    # Pointers and sizes at multiples of 16, as ours.
    aligned = {(at,): [["tt.divisibility", 16]] for at, t in enumerate(types.values()) if t != "fp32"}
    source = ASTSource(kernel, signature, constexprs=constants, attrs=aligned)
    options = {"num_warps": THREADS // 64, "enable_fp_fusion": False, **options}
    made = triton.compile(source, target=GPUTarget("hip", target, 64), options=options)
    folder.joinpath(f"{name}.{target}.hsaco").write_bytes(made.asm["hsaco"])
    folder.joinpath(f"{name}.{target}.lds").write_text(str(made.metadata.shared))


def main():
    folder = Path(sys.argv[1])
    for target, fp8 in TARGETS.items():
        sizes = {"n": "i32", "k": "i32"}
        tile = {"tile_m": 128, "tile_n": 128, "tile_k": 128}
        codes = {"x": "*fp8e4nv", "x_scales": "*u8", "weight": "*fp8e4nv", "weight_scales": "*u8", "y": "*bf16", **sizes}

        def one(name, *rest, **options):
            compile_one(folder, name, target, *rest, **options)

        one("bf16", linear, {"x": "*bf16", "weight": "*bf16", "y": "*bf16", **sizes}, {**tile, "tile_k": 64})
        one("fp8", linear, {"x": f"*{fp8}", "weight": f"*{fp8}", "y": "*fp32", **sizes}, tile)
        one("mxfp8", scaled, codes, {**tile, "form": "e4m3", "scale_rows": 32})
        one("mxfp4", scaled, {**codes, "weight": "*u8"}, {**tile, "form": "e2m1", "scale_rows": 1})
        one("softmax", softmax, {"x": "*fp32", "y": "*fp32", "width": "i32"}, {"most": 1024})
        types = {"x": "*bf16", "weight": "*bf16", "y": "*bf16", "width": "i32", "eps": "fp32"}
        one("norm", norm, types, {"most": 1024})


main()
