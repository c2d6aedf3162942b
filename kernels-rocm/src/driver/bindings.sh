#!/bin/sh
# bindings.sh INCLUDE: writes bindings.rs from the headers of HIP in a folder, such as /usr/include.
#
# Made with Debian's bindgen 0.60.1 from its libamdhip64-dev 5.2.3. Functions and numbers are those that later releases keep;
# no structure whose layout changed is among them.
set -eu
cd "$(dirname "$0")"
functions='hipInit|hipRuntimeGetVersion|hipGetErrorString
hipGetDeviceCount|hipDeviceGet|hipDeviceGetName|hipDeviceTotalMem|hipDeviceGetAttribute|hipDeviceGetPCIBusId
hipSetDevice|hipDeviceSynchronize|hipDeviceCanAccessPeer|hipDeviceEnablePeerAccess
hipMalloc|hipExtMallocWithFlags|hipFree|hipMemGetInfo|hipHostMalloc|hipHostFree
hipHostRegister|hipHostUnregister|hipHostGetDevicePointer|hipMemcpyAsync|hipMemsetAsync
hipModuleLoadData|hipModuleUnload|hipModuleGetFunction|hipModuleLaunchKernel|hipFuncGetAttribute
hipStreamCreateWithFlags|hipStreamDestroy|hipStreamSynchronize|hipStreamQuery|hipStreamWaitEvent
hipStreamBeginCapture|hipStreamEndCapture|hipStreamIsCapturing
hipEventCreateWithFlags|hipEventRecord|hipEventQuery|hipEventSynchronize|hipEventElapsedTime|hipEventDestroy
hipGraphInstantiateWithFlags|hipGraphLaunch|hipGraphDestroy|hipGraphExecDestroy'
constants='hipStreamNonBlocking|hipEventDisableTiming|hipHostMalloc(Default|Portable|Mapped)|hipDeviceMallocFinegrained
hipHostRegister(Portable|Mapped)'
any_of() { printf '(%s)' "$(printf %s "$1" | tr '\n' '|')"; }
echo '#include <hip/hip_runtime_api.h>' >bindings.h
trap 'rm -f bindings.h' EXIT
bindgen bindings.h --dynamic-loading Hip --dynamic-link-require-all \
    --allowlist-function "$(any_of "$functions")" --allowlist-var "$(any_of "$constants")" \
    --no-prepend-enum-name --no-doc-comments --no-layout-tests --output bindings.rs \
    -- -D__HIP_PLATFORM_AMD__ "-I$1"
# Functions are called through the fields, each call in an `unsafe` block of its own: methods around them are one more copy
# of every signature.
sed -i '/^    pub unsafe fn hip/,/^    }$/d' bindings.rs
