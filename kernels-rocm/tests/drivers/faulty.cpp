// A driver of two boards that compute nothing and fail where they are told to: what a right driver does with right calls is
// tested elsewhere.

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

static std::string told;
static int told_code;
static int launches;

static int answer(const char *call) { return told == call ? told_code : 0; }

// Every call of that name answers `code` from now on.
extern "C" void faulty_answer(const char *call, int code) {
    told = call;
    told_code = code;
}
extern "C" int faulty_launches() { return launches; }

#define HIP(name, parameters, body)                                                                                            \
    extern "C" int name parameters {                                                                                           \
        if (int code = answer(#name)) return code;                                                                             \
        body;                                                                                                                  \
        return 0;                                                                                                              \
    }

static void *handle() {
    static uintptr_t last = 0x1000;
    return reinterpret_cast<void *>(last += 0x10);
}

extern "C" const char *hipGetErrorString(int code) { return code == 999 ? nullptr : "as told"; }

HIP(hipInit, (unsigned), )
HIP(hipRuntimeGetVersion, (int *version), *version = 70051831)
HIP(hipGetDeviceCount, (int *count), *count = 2)
HIP(hipDeviceGet, (int *device, int ordinal), *device = ordinal)
HIP(hipDeviceGetName, (char *name, int bytes, int), strncpy(name, "AMD Instinct MI300X", bytes))
HIP(hipDeviceGetPCIBusId, (char *, int, int), )
HIP(hipDeviceTotalMem, (size_t *bytes, int), *bytes = size_t(1) << 20)
HIP(hipDeviceSynchronize, (), )
HIP(hipSetDevice, (int), )
HIP(hipDeviceGetAttribute, (int *value, unsigned, int), *value = 304)
HIP(hipDeviceCanAccessPeer, (int *can, int, int), *can = told != "no link")
HIP(hipDeviceEnablePeerAccess, (int, unsigned), )
HIP(hipMalloc, (void **to, size_t bytes), *to = malloc(bytes))
HIP(hipExtMallocWithFlags, (void **to, size_t bytes, unsigned), *to = malloc(bytes))
HIP(hipHostMalloc, (void **to, size_t bytes, unsigned), *to = malloc(bytes))
HIP(hipFree, (void *memory), free(memory))
HIP(hipHostFree, (void *memory), free(memory))
HIP(hipMemGetInfo, (size_t *free, size_t *total), *free = 77; *total = size_t(1) << 20)
HIP(hipHostRegister, (void *, size_t, unsigned), )
HIP(hipHostUnregister, (void *), )
HIP(hipHostGetDevicePointer, (void **to, void *host, unsigned), *to = host)
HIP(hipMemcpyAsync, (void *to, const void *from, size_t bytes, unsigned, void *), memcpy(to, from, bytes))
HIP(hipMemsetAsync, (void *to, int byte, size_t bytes, void *), memset(to, byte, bytes))
HIP(hipModuleLoadData, (void **module, const void *), *module = handle())
HIP(hipModuleUnload, (void *), )
HIP(hipModuleGetFunction, (void **function, void *, const char *), *function = handle())
HIP(hipFuncGetAttribute, (int *value, unsigned, void *), *value = 0)
HIP(hipModuleLaunchKernel,
    (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **), launches++)
HIP(hipStreamCreateWithFlags, (void **stream, unsigned), *stream = handle())
HIP(hipStreamDestroy, (void *), )
HIP(hipStreamSynchronize, (void *), )
HIP(hipStreamQuery, (void *), )
HIP(hipStreamWaitEvent, (void *, void *, unsigned), )
HIP(hipStreamBeginCapture, (void *, unsigned), )
HIP(hipStreamEndCapture, (void *, void **graph), *graph = handle())
HIP(hipStreamIsCapturing, (void *, unsigned *status), *status = 0)
HIP(hipEventCreateWithFlags, (void **event, unsigned), *event = handle())
HIP(hipEventRecord, (void *, void *), )
HIP(hipEventQuery, (void *), )
HIP(hipEventSynchronize, (void *), )
HIP(hipEventElapsedTime, (float *milliseconds, void *, void *), *milliseconds = -1)
HIP(hipEventDestroy, (void *), )
HIP(hipGraphInstantiateWithFlags, (void **runnable, void *, unsigned long long), *runnable = handle())
HIP(hipGraphLaunch, (void *, void *), launches++)
HIP(hipGraphDestroy, (void *), )
HIP(hipGraphExecDestroy, (void *), )
