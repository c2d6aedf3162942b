"""SGLang's Triton GEMM for FP8 with 32x32 weight blocks and 1x32 activation scales: our contract.

Reads one file of SGLang 0.5.23, `sglang/kernels/ops/gemm/fp8_kernel.py`, and the H200 tables beside
it. Its other imports are replaced by stubs, so that SGLang itself need not be importable.
"""
import glob
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import types

import torch
import triton

from peer import Absent, DEVICE, codes, copies, folder, main

FILE = "sglang/kernels/ops/gemm/fp8_kernel.py"
# What SGLang's host code takes for shapes without a table.
PLAIN = dict(BLOCK_SIZE_M=64, BLOCK_SIZE_N=32, BLOCK_SIZE_K=32, GROUP_SIZE_M=32, num_warps=4,
             num_stages=3)


class Anything:
    """Stands in for whatever a stubbed module is asked for; decorators give their function back."""

    def __init__(self, *_, **__):
        pass

    def __call__(self, *arguments, **named):
        plain = len(arguments) == 1 and not named and callable(arguments[0])
        return arguments[0] if plain else Anything()

    def __getattr__(self, name):
        return Anything()

    def __bool__(self):
        return False

    def __iter__(self):
        return iter(())


class Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds one real module and makes up every other of its package."""

    def __init__(self, name, path):
        self.name, self.path = name, path

    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            return importlib.util.spec_from_file_location(name, self.path)
        made = name.split(".")[0] == self.name.split(".")[0]
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if made else None

    def create_module(self, spec):
        module = types.ModuleType(spec.name)
        module.__path__, module.__file__ = [], "<stub>"

        def anything(name):
            if name.startswith("__"):
                raise AttributeError(name)
            return Anything()

        module.__getattr__ = anything
        return module

    def exec_module(self, module):
        pass


def load():
    spec = importlib.util.find_spec("sglang")
    roots = [os.path.dirname(p) for p in (spec.submodule_search_locations if spec else [])]
    for root in [folder()] + roots:
        path = os.path.join(root, FILE)
        if root and os.path.exists(path):
            name = FILE[:-3].replace("/", ".")
            sys.meta_path.insert(0, Stubs(name, path))
            return importlib.import_module(name), tables(os.path.dirname(path))
    raise Absent(f"{FILE}: pip install sglang==0.5.23, or put it into TANDEM_PEERS")


def tables(place):
    """Configurations by rows, for each (n, k)."""
    found = {}
    for path in glob.glob(os.path.join(place, "configs", "*NVIDIA_H200*32, 32*.json")):
        n, k = (int(part.split("=")[1]) for part in os.path.basename(path).split(",")[:2])
        with open(path, encoding="utf-8") as file:
            found[n, k] = {int(rows): config for rows, config in json.load(file).items()}
    return found


def nearest(table, rows):
    return table[min(table, key=lambda r: abs(r - rows))]


def configurations(known, n, k, rows):
    """As shipped, then tiles of other shapes' tables and larger ones."""
    shipped = nearest(known[n, k], rows) if (n, k) in known else PLAIN
    others = [nearest(table, rows) for table in list(known.values())[:3]] if rows <= 64 else [
        dict(PLAIN, BLOCK_SIZE_N=128),
        dict(PLAIN, BLOCK_SIZE_M=128, BLOCK_SIZE_N=128, num_warps=8, num_stages=4)]
    yield "as shipped", shipped
    for i, config in enumerate(o for o in others if o != shipped):
        yield f"tile {i + 1}", config


def dense(sg, case, config):
    n, k, rows = case["n"], case["k"], case["tokens"]
    power = lambda low, high, *s: torch.exp2(torch.randint(low, high, s, device=DEVICE).float())
    x, w = codes(rows, k), codes(n, k)
    sx, sw = power(-8, -4, rows, k // 32), power(-10, -6, -(-n // 32), k // 32)
    out = torch.empty(rows, n, device=DEVICE, dtype=torch.bfloat16)
    split = config.get("SPLIT_K", 1)
    swap = config.get("SWAP_AB", False) or split > 1
    part = torch.empty(split, rows, n, device=DEVICE) if split > 1 else out
    kernel = sg._w8a8_block_fp8_matmul_hopper if swap else sg._w8a8_block_fp8_matmul
    tiles = triton.cdiv(rows, config["BLOCK_SIZE_M"]) * triton.cdiv(n, config["BLOCK_SIZE_N"])
    weights = [w] + [w.clone() for _ in range(copies(n * k) - 1)]

    def call(weight):
        kernel[(tiles, split) if swap else (tiles,)](
            x, weight, part, sx, sw, rows, n, k, 32, 32, k, 1, 1, k, n, 1, sx.stride(0), 1, 1,
            sw.stride(0), **config, needs_masking=k % config["BLOCK_SIZE_K"] != 0)
        if split > 1:
            sum_up = sg._reduce_block_fp8_split_k[(triton.cdiv(rows * n, 256),)]
            sum_up(part, out, rows * n, split, 256)
        return out

    def check():
        some = slice(0, 64)
        left = x[some].float() * sx[some].repeat_interleave(32, 1)
        right = w.float() * sw.repeat_interleave(32, 0)[:n].repeat_interleave(32, 1)
        return call(w)[some], left @ right.t()

    return [lambda w=w: call(w) for w in weights], check


def peers(bench):
    sg, known = load()
    for case in bench.cases("gemm.mxfp8"):
        for name, config in configurations(known, case["n"], case["k"], case["tokens"]):
            bench.add(case, f"SGLang Triton {name}", "", lambda: dense(sg, case, config))


if __name__ == "__main__":
    main(peers)
