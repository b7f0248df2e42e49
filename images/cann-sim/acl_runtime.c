/* Stand-in for the CANN runtime: devices, memory, streams, events. Host memory stands in for device memory; nothing is computed.
 *
 * Everything written here writes results through pointers. Functions that only need to say "success" are in served-generically.txt. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef int aclError;
enum { kSuccess = 0, kErrorInvalidParam = 100000, kErrorBadAlloc = 200000 };
enum { kModeHost = 1, kEventComplete = 1, kStreamComplete = 0 };
enum { kDevices = 8, kCores = 24 };
static const size_t kFreeBytes = 56ull << 30;   /* what a 64 GB card shows when idle, rounded */
static const size_t kTotalBytes = 64ull << 30;

static __thread int current_device;
static char the_context[64]; /* contexts are only compared and handed back */

static aclError Allocate(void **result, size_t size) {
  /* 512: device allocations are aligned to it, and some callers check */
  return posix_memalign(result, 512, size ? size : 64) ? kErrorBadAlloc : kSuccess;
}
/* Streams, events and other opaque handles. Callers never look inside. */
static aclError NewHandle(void **result) {
  *result = calloc(1, 64);
  return *result == NULL ? kErrorBadAlloc : kSuccess;
}
static aclError FreeHandle(void *handle) {
  free(handle);
  return kSuccess;
}

/* The name decides which kernels MindSpore thinks it has; this one is the 910B of the Atlas 800T A2. */
const char *aclrtGetSocName(void) { return "Ascend910B1"; }
const char *aclGetRecentErrMsg(void) { return ""; }

aclError aclrtSetDevice(int device) {
  current_device = device;
  return kSuccess;
}
aclError aclrtGetDevice(int *device) {
  *device = current_device;
  return kSuccess;
}
aclError aclrtGetDeviceCount(uint32_t *count) {
  *count = kDevices;
  return kSuccess;
}
aclError aclrtGetRunMode(int *mode) {
  *mode = kModeHost;
  return kSuccess;
}
aclError aclrtDeviceCanAccessPeer(int *can, int device, int peer) {
  *can = device != peer;
  return kSuccess;
}
aclError aclrtDeviceGetStreamPriorityRange(int32_t *least, int32_t *greatest) {
  *least = 7;
  *greatest = 0;
  return kSuccess;
}
aclError aclrtDeviceGetBareTgid(int32_t *pid) {
  *pid = 1;
  return kSuccess;
}
aclError aclrtGetDeviceResLimit(int device, int kind, uint32_t *value) {
  (void)device, (void)kind;
  *value = kCores;
  return kSuccess;
}
aclError aclrtGetStreamResLimit(void *stream, int kind, uint32_t *value) {
  (void)stream, (void)kind;
  *value = kCores;
  return kSuccess;
}
aclError aclrtGetResInCurrentThread(int kind, uint32_t *value) {
  (void)kind;
  *value = kCores;
  return kSuccess;
}

aclError aclrtCreateContext(void **context, int device) {
  (void)device;
  *context = the_context;
  return kSuccess;
}
aclError aclrtGetCurrentContext(void **context) {
  *context = the_context;
  return kSuccess;
}

aclError aclrtGetMemInfo(int kind, size_t *free_bytes, size_t *total_bytes) {
  (void)kind;
  *free_bytes = kFreeBytes;
  *total_bytes = kTotalBytes;
  return kSuccess;
}
aclError aclrtMalloc(void **result, size_t size, int policy) {
  (void)policy;
  return Allocate(result, size);
}
aclError aclrtMallocAlign32(void **result, size_t size, int policy) {
  (void)policy;
  return Allocate(result, size);
}
aclError aclrtMallocHost(void **result, size_t size) { return Allocate(result, size); }
aclError aclrtFree(void *memory) { return FreeHandle(memory); }
aclError aclrtFreeHost(void *memory) { return FreeHandle(memory); }

aclError aclrtMemcpy(void *to, size_t room, const void *from, size_t size, int kind) {
  (void)kind;
  if (size > room) {
    return kErrorInvalidParam;
  }
  memcpy(to, from, size);
  return kSuccess;
}
aclError aclrtMemcpyAsync(void *to, size_t room, const void *from, size_t size, int kind, void *stream) {
  (void)stream;
  return aclrtMemcpy(to, room, from, size, kind);
}
aclError aclrtMemset(void *to, size_t room, int32_t value, size_t size) {
  if (size > room) {
    return kErrorInvalidParam;
  }
  memset(to, value, size);
  return kSuccess;
}
aclError aclrtMemsetAsync(void *to, size_t room, int32_t value, size_t size, void *stream) {
  (void)stream;
  return aclrtMemset(to, room, value, size);
}
int halHostRegister(void *from, uint64_t size, uint32_t flag, uint32_t device, void **to) {
  (void)size, (void)flag, (void)device;
  *to = from;
  return kSuccess;
}

/* Every stream is always idle and every event always over: a call is done when it returns. */
aclError aclrtCreateStream(void **stream) { return NewHandle(stream); }
aclError aclrtCreateStreamWithConfig(void **stream, uint32_t priority, uint32_t flag) {
  (void)priority, (void)flag;
  return NewHandle(stream);
}
aclError aclrtDestroyStream(void *stream) { return FreeHandle(stream); }
aclError aclrtDestroyStreamForce(void *stream) { return FreeHandle(stream); }
aclError aclrtStreamQuery(void *stream, int *status) {
  (void)stream;
  *status = kStreamComplete;
  return kSuccess;
}
aclError aclrtCreateEventWithFlag(void **event, uint32_t flag) {
  (void)flag;
  return NewHandle(event);
}
aclError aclrtCreateEventExWithFlag(void **event, uint32_t flag) {
  (void)flag;
  return NewHandle(event);
}
aclError aclrtDestroyEvent(void *event) { return FreeHandle(event); }
aclError aclrtQueryEventStatus(void *event, int *status) {
  (void)event;
  *status = kEventComplete;
  return kSuccess;
}
aclError aclrtEventElapsedTime(float *milliseconds, void *start, void *end) {
  (void)start, (void)end;
  *milliseconds = 0;
  return kSuccess;
}
aclError aclrtEventGetTimestamp(void *event, uint64_t *microseconds) {
  (void)event;
  *microseconds = 0;
  return kSuccess;
}
/* The stream is idle, so the call back is due at once. */
aclError aclrtLaunchCallback(void (*callback)(void *), void *data, int block, void *stream) {
  (void)block, (void)stream;
  callback(data);
  return kSuccess;
}
