"""The rows that one rank of an expert group gets under uniform routing."""
import torch

VARIANTS = 8


def routings(case):
    """Expert of each local row, ascending; several draws for few tokens, which reach few experts."""
    total, local, top_k, tokens = (case[n] for n in ("total", "local", "top_k", "tokens"))
    random = torch.Generator().manual_seed(tokens)
    draws = []
    while len(draws) < (VARIANTS if tokens <= 64 else 2):
        chosen = torch.rand(tokens, total, generator=random).topk(top_k, 1).indices.flatten()
        rows = chosen[chosen < local].sort().values
        if len(rows) >= 16:
            rows = rows[: len(rows) // 4 * 4]  # some peers want row counts in fours
        if len(rows):
            draws.append(rows)
    return draws


def matrix(case):
    """Outputs and inputs of the one GEMM that a peer runs for an operator of ours."""
    if case.operator == "moe.expert_up":
        return 2 * case["inter"], case["hidden"]
    return case["hidden"], case["inter"]
