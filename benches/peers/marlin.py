"""Marlin W4A16 for MXFP4 experts, as SGLang has it, built for sm_90a with tvm-ffi. GEMM alone."""
import torch

from peer import DEVICE, ffi_module, main
from routing import matrix, routings

HINT = "sglang_modules.py builds it"
FLOAT4_E2M1 = 562949953487106  # the kernel's number of the weight type
BLOCKS = (8, 16, 32, 48, 64)
VALUES = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]


def permutation():
    """Where Marlin keeps the codes of 16 x 64 weights."""
    order = []
    for lane in range(32):
        row = 2 * (lane % 4)
        one = [16 * r + lane // 4 + 8 * half for half in (0, 1) for r in (row, row + 1, row + 8, row + 9)]
        order += [at + 256 * block for block in range(4) for at in one]
    return torch.tensor(order).view(-1, 8)[:, [0, 2, 4, 6, 1, 3, 5, 7]].reshape(-1).to(DEVICE)


def repacked(codes, order):
    """Nibbles `[n, k]` as words `[k / 16, 2 n]`."""
    n, k = codes.shape
    tiles = codes.t().reshape(k // 16, 16, n // 16, 16).permute(0, 2, 1, 3).reshape(-1, 1024)
    words = tiles[:, order].reshape(k // 16, n * 2, 8).to(torch.int64)
    words = sum(words[..., i] << (4 * i) for i in range(8))
    return torch.where(words >= 2**31, words - 2**32, words).to(torch.int32)


def rescaled(scales, n):
    """Scale bytes `[n, k / 32]` as the kernel reads them, `[k / 32, n]`."""
    order = torch.tensor([i + 8 * j for i in range(8) for j in range(8)], device=DEVICE)
    mixed = scales.t().reshape(-1, 64)[:, order].reshape(-1, 4)[:, [0, 2, 1, 3]]
    return mixed.reshape(-1, n).contiguous()


def weights(case):
    (n, k), order = matrix(case), permutation()
    packed, scales, plain = [], [], []
    for _ in range(case["local"]):
        code = torch.randint(0, 16, (n, k), device=DEVICE, dtype=torch.uint8)
        scale = torch.randint(117, 122, (n, k // 32), device=DEVICE, dtype=torch.uint8)
        packed.append(repacked(code, order))
        scales.append(rescaled(scale, n))
        plain.append((code, scale))
    return torch.stack(packed), torch.stack(scales), plain


def aligned(rows, block, local):
    """Row numbers by expert, padded to whole blocks, and the expert of each block."""
    numbers, experts = [], []
    for expert in range(local):
        mine = (rows == expert).nonzero().flatten().tolist()
        numbers += mine + [len(rows)] * (-len(mine) % block)
        experts += [expert] * -(-len(mine) // block)
    device = lambda values: torch.tensor(values, dtype=torch.int32, device=DEVICE)
    return device(numbers), device(experts), device([len(numbers)])


def problem(gemm, case, held, block):
    (n, k), (packed, scales, plain) = matrix(case), held
    none = lambda dtype: torch.empty(0, device=DEVICE, dtype=dtype)
    b0, i0, draws = none(torch.bfloat16), none(torch.int32), routings(case)
    room = torch.zeros(132 * 4, device=DEVICE, dtype=torch.int32)
    sums = torch.empty(132 * 4 * block * 256 * (2 if block == 8 else 1), device=DEVICE)
    calls, inputs = [], []
    for rows in draws:
        x = torch.randn(len(rows), k, device=DEVICE, dtype=torch.bfloat16)
        out = torch.full((len(rows), n), float("nan"), device=DEVICE, dtype=torch.bfloat16)
        ids, experts, count = aligned(rows, block, case["local"])
        ones = torch.ones(len(rows), device=DEVICE)

        def call(x=x, out=out, ids=ids, experts=experts, count=count, ones=ones):
            gemm(x, out, packed, b0, scales, b0, b0, i0, i0, room, ids, experts, count, ones, b0,
                 sums, block, 1, False, False, FLOAT4_E2M1, x.shape[0], n, k, False, False, True,
                 False, k // 32, 32, False, True, False)
            return out

        calls.append(call)
        inputs.append(x)

    def check():
        expert = int(draws[0][0])
        code, scale = plain[expert]
        weight = torch.tensor(VALUES, device=DEVICE)[code.long()]
        weight = weight * torch.exp2(scale.float() - 127).repeat_interleave(32, 1)
        mine = (draws[0] == expert).to(DEVICE)
        return calls[0]()[mine], inputs[0][mine].float() @ weight.t()

    return calls, check


def peers(bench):
    gemm = ffi_module("marlin_moe", HINT)["moe_wna16_marlin_gemm"]
    for operator in ("moe.expert_up", "moe.expert_down"):
        held = None
        for case in bench.cases(operator, local=48):
            held = held or weights(case)
            tokens = case["tokens"]
            for block in BLOCKS:
                if (tokens <= 64 and block > 16) or (tokens >= 1024 and block < 16):
                    continue
                bench.add(case, f"Marlin, blocks of {block}", "bf16 activations; GEMM alone",
                          lambda: problem(gemm, case, held, block))


if __name__ == "__main__":
    main(peers)
