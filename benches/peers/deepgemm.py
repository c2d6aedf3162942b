"""DeepGEMM 2.8 on Hopper: 1x128 FP8 GEMM, grouped GEMM on FP8 copies, index scores, mHC mixes.

Its scales are fp32 over 128 elements and its index keys FP8: relaxed or other contracts than ours.
"""
import torch

from peer import DEVICE, codes, copies, distance, main, package
from routing import matrix, routings

HINT = "pip install vllm==0.33.0, or put its third_party/deep_gemm into TANDEM_PEERS"
PAGE, HEADS, WIDTH = 64, 32, 128


def scales(*shape):
    return torch.rand(*shape, device=DEVICE) * 4e-3 + 1e-3


def spread(s, rows, columns):
    return s.repeat_interleave(rows, -2).repeat_interleave(columns, -1)


def dense(dg, case):
    n, k, tokens = case["n"], case["k"], case["tokens"]
    x, sx = codes(tokens, k), scales(tokens, k // 128)
    w, sw = codes(n, k), scales(-(-n // 128), k // 128)
    aligned = dg.get_mn_major_tma_aligned_tensor(sx)
    out = torch.full((tokens, n), float("nan"), device=DEVICE, dtype=torch.bfloat16)
    weights = [w] + [w.clone() for _ in range(copies(n * k) - 1)]

    def call(weight):
        dg.fp8_gemm_nt((x, aligned), (weight, sw), out, disable_ue8m0_cast=True)
        return out

    def check():
        some = slice(0, 64)
        left = x[some].float() * spread(sx[some], 1, 128)
        return call(w)[some], left @ (w.float() * spread(sw, 128, 128)[:n]).t()

    return [lambda w=w: call(w) for w in weights], check


def grouped(dg, case):
    (n, k), local = matrix(case), case["local"]
    w = torch.stack([codes(n, k) for _ in range(local)])
    sw = scales(local, n // 128, k // 128)
    rows = routings(case)[0]
    count = torch.bincount(rows, minlength=local)
    step = int(dg.get_mk_alignment_for_contiguous_layout())
    most = -(-int(count.max()) // step) * step
    x, sx = codes(local, most, k), scales(local, most, k // 128)
    aligned, held = dg.get_mn_major_tma_aligned_tensor(sx), count.int().to(DEVICE)
    out = torch.full((local, most, n), float("nan"), device=DEVICE, dtype=torch.bfloat16)
    usual = max(1, len(rows) // local)

    def call():
        dg.m_grouped_fp8_gemm_nt_masked((x, aligned), (w, sw), out, held, usual,
                                        disable_ue8m0_cast=True)
        return out

    def check():
        e = int(count.argmax())
        some = slice(0, int(count[e]))
        left = x[e, some].float() * spread(sx[e, some], 1, 128)
        return call()[e, some], left @ (w[e].float() * spread(sw[e], 128, 128)).t()

    return [call], check


def scores(dg, case):
    """Two rows a request at most: a request of six rows is listed three times."""
    requests, rows, length = case["sequences"], case["tokens"] // case["sequences"], case["entries"]
    each = rows if rows in (1, 2, 4) else 2
    listed = requests * rows // each
    blocks, held = length // PAGE, max(requests, -(-int(300e6) // (length * (WIDTH + 4))))
    keys = codes(held * blocks, PAGE, WIDTH)
    ks = torch.rand(held * blocks, PAGE, device=DEVICE) * 0.01 + 0.01
    cache = torch.cat([keys.view(torch.uint8).reshape(held * blocks, -1),
                       ks.view(torch.uint8).reshape(held * blocks, -1)], 1)
    cache = cache.view(held * blocks, PAGE, 1, WIDTH + 4)
    table = torch.arange(held * blocks, dtype=torch.int32, device=DEVICE).view(held, blocks)
    q = codes(listed, each, HEADS, WIDTH)
    weight = torch.randn(listed * each, HEADS, device=DEVICE)
    lengths = torch.full((listed, each), length, dtype=torch.int32, device=DEVICE)
    meta = dg.get_paged_mqa_logits_metadata(lengths, PAGE, 132 // (2 if each == 4 else 1))
    starts = range(0, held - requests + 1, requests)
    tables = [table[i:i + requests].repeat_interleave(rows // each, 0).contiguous() for i in starts]

    def call(t):
        return dg.fp8_fp4_paged_mqa_logits((q, None), cache, weight, lengths, t, meta, length)

    def check():
        key = keys[:blocks].float().view(length, WIDTH) * ks[:blocks].view(length, 1)
        dots = torch.relu(torch.einsum("nhd,ld->nhl", q[0].float(), key))
        return call(tables[0])[:each, :length], (dots * weight[:each, :, None]).sum(1)

    return [lambda t=t: call(t) for t in tables], check


def prompt_scores(dg, case):
    """Rows of one request, whose keys lie together."""
    rows, length = case["tokens"], case["entries"]
    keys, ks = codes(length, WIDTH), torch.rand(length, device=DEVICE) * 0.01 + 0.01
    q, weight = codes(rows, HEADS, WIDTH), torch.randn(rows, HEADS, device=DEVICE)
    first = torch.zeros(rows, dtype=torch.int32, device=DEVICE)
    past = torch.full((rows,), length, dtype=torch.int32, device=DEVICE)
    call = lambda: dg.fp8_fp4_mqa_logits((q, None), (keys, ks), weight, first, past, length)

    def check():
        some = slice(0, 8)
        dots = torch.einsum("nhd,ld->nhl", q[some].float(), keys.float() * ks[:, None])
        return call()[some, :length], (torch.relu(dots) * weight[some, :, None]).sum(1)

    return [call], check


def mixes(dg, case):
    """The product and the sums of squares; what follows them is not in it."""
    k, n, tokens = case["streams"] * case["width"], (case["streams"] + 2) * case["streams"], case["tokens"]
    splits = 80 if tokens <= 64 else 16 if tokens <= 512 else 4 if tokens <= 4096 else 1
    weight = torch.randn(n, k, device=DEVICE) * 0.01
    x = torch.randn(tokens, k, device=DEVICE, dtype=torch.bfloat16)
    inputs = [x] + [x.clone() for _ in range(copies(x.nbytes, 32) - 1)]
    out = torch.full((splits, tokens, n), float("nan"), device=DEVICE)
    squares = torch.full((splits, tokens), float("nan"), device=DEVICE)

    def call(v):
        dg.tf32_hc_prenorm_gemm(v, weight, out, squares, splits)

    def check():
        call(x)
        assert distance(squares.sum(0), x.double().square().sum(1)) < 5e-3
        return out.sum(0), x.double() @ weight.double().t()

    return [lambda v=v: call(v) for v in inputs], check


def peers(bench):
    dg = package("deep_gemm", HINT)
    for case in bench.cases("gemm.mxfp8"):
        if case["k"] % 128 == 0:
            bench.add(case, "DeepGEMM", "scales of 128", lambda: dense(dg, case))
    for operator in ("moe.expert_up", "moe.expert_down"):
        for case in bench.cases(operator, local=48):
            contract = "FP8 weights, scales of 128; the GEMM alone"
            bench.add(case, "DeepGEMM grouped", contract, lambda: grouped(dg, case))
    for case in bench.cases("index.scores"):
        if case["tokens"] <= 6 * case["sequences"]:
            bench.add(case, "DeepGEMM paged", "FP8 keys", lambda: scores(dg, case))
        elif case["sequences"] == 1:
            bench.add(case, "DeepGEMM", "FP8 keys", lambda: prompt_scores(dg, case))
    for case in bench.cases("mhc.mixes"):
        bench.add(case, "DeepGEMM prenorm", "the product alone", lambda: mixes(dg, case))


if __name__ == "__main__":
    main(peers)
