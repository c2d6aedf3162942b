"""Builds the CUDA kernels of SGLang 0.5.23 that peers load, for sm_90a, by nvcc 13.0.

    TANDEM_PEERS=FOLDER python3 benches/peers/sglang_modules.py [MODULE ...]

Puts MODULE.so into the folder. Wanted there or installed: sglang (its sources; it is not imported),
apache-tvm-ffi 0.1.11, and CUTLASS's headers, which come with vLLM's deep_gemm. One after the other
they take some five minutes of a core, Marlin most of it. ptxas tells registers and spills.
"""
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

FOLDER = os.environ.get("TANDEM_PEERS") or sys.exit("TANDEM_PEERS: where the modules are to be put")
SELECT = "deep_select/entry.cuh"
SELECT_FLAGS = ["--expt-extended-lambda", "--use_fast_math", "--ftz=false",
                "-Xptxas=--register-usage-level=10"]


def select(kind, dtype, *tunings):
    """Top-k as SGLang tunes it: values, width, threads and so on up to the blocks of a cluster."""
    configs = [f"TopkSelectConfig<{dtype},int32_t,false,false,false,{tuning},false>"
               for tuning in tunings]
    return SELECT, "topk", f"deep_select::{kind}<{','.join(configs)}>::topk", SELECT_FLAGS


# Header, name and expression of what is exported, and flags.
MODULES = {
    "ds_fp32_512": select("TopkNormal", "fp32_t", "512,512,1,8192,4096,3,512,1"),
    "ds_bf16_512": select("TopkNormal", "bf16_t", "512,512,1,8192,4096,5,512,1",
                          "512,256,2,4096,4096,4,512,1"),
    "ds_bf16x8_512": select("TopkCluster", "bf16_t", "1024,512,1,8192,4096,5,512,8"),
    "q8kv8": ("sparse_mla_q8kv8_prefill_sm90/entry.cuh", "dispatch",
              "sparse_prefill_q8kv8_dispatch",
              ["-DNDEBUG", "-DCUTE_USE_PACKED_TUPLE=1", "-DCUTLASS_ENABLE_TENSOR_CORE_MMA=1",
               "--use_fast_math"]),
    "marlin_moe": ("gemm/marlin_moe/moe_wna16_marlin.cuh", "moe_wna16_marlin_gemm",
                   "moe_wna16_marlin_gemm<bf16_t,false,false,false,false,false>", []),
}
FFI_HEADERS = ("container/tensor.h", "dtype.h", "error.h", "extra/c_env_api.h", "function.h")


def place(package, *inside):
    """A path within a package of the folder or an installed one, which is not imported."""
    spec = importlib.util.find_spec(package)
    roots = [os.path.join(FOLDER, package)]
    roots += list(spec.submodule_search_locations) if spec else []
    for root in roots:
        path = os.path.join(root, *inside)
        if os.path.exists(path):
            return path
    return None


def needed(path, what):
    return path or sys.exit(f"{what} is neither in {FOLDER} nor installed")


def build(name, work):
    header, export, expression, flags = MODULES[name]
    jit = needed(place("sglang", "kernels", "jit", "csrc"), "sglang 0.5.23")
    ffi = needed(place("tvm_ffi", "include"), "apache-tvm-ffi 0.1.11")
    cutlass = needed(place("deep_gemm", "include") or
                     place("vllm", "third_party", "deep_gemm", "include"), "deep_gemm")
    vendor = os.path.join(jit, "deep_select", "vendor")
    source = os.path.join(work, f"{name}.cu")
    with open(source, "w", encoding="utf-8") as file:
        file.writelines(f"#include <tvm/ffi/{one}>\n" for one in FFI_HEADERS)
        file.write(f'#include "{header}"\nnamespace sglang {{\n'
                   f"TVM_FFI_DLL_EXPORT_TYPED_FUNC({export}, ({expression}));\n}}\n")
    include = [os.path.join(os.path.dirname(jit), "include"), jit, ffi, cutlass, vendor,
               os.path.join(vendor, "3rdparty", "kerutils", "include")]
    nvcc = shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc"
    made = os.path.join(work, f"{name}.so")
    subprocess.run(
        [nvcc, "-std=c++20", "-O3", "--expt-relaxed-constexpr", "-DSGL_CUDA_ARCH=900",
         "-gencode=arch=compute_90a,code=sm_90a", "-shared", "-Xcompiler", "-fPIC",
         "-Xptxas=-v", *flags, *(f"-I{path}" for path in include), source, "-o", made,
         "-L" + needed(place("tvm_ffi", "lib"), "apache-tvm-ffi 0.1.11"), "-ltvm_ffi"], check=True)
    shutil.copy(made, FOLDER)


def main():
    sys.path.insert(0, FOLDER)
    wanted = sys.argv[1:] or list(MODULES)
    unknown = [name for name in wanted if name not in MODULES]
    if unknown:
        sys.exit(f"{unknown[0]} is none of {', '.join(MODULES)}")
    with tempfile.TemporaryDirectory() as work:
        for name in wanted:
            print(f"building {name}", flush=True)
            build(name, work)


if __name__ == "__main__":
    main()
