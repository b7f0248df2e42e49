// Counts the events that MindSpore's Ascend resource manager holds, by standing in front of the two functions that
// make and destroy them. Report 301 is about these events; a count decides where bytes only hint. Host code alone, so
// the same library serves on tier npu. Load it with ctypes.CDLL(path, RTLD_GLOBAL) before `import mindspore`.
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>

// The mangled names of MindSpore 2.10.0; the old libstdc++ ABI makes no difference to them.
#define CREATE "_ZN9mindspore6device6ascend16AscendResManager19CreateEventWithFlagEbbb"
#define DESTROY "_ZN9mindspore6device6ascend16AscendResManager12DestroyEventERKSt10shared_ptrINS_11DeviceEventEE"

// A shared pointer is passed and returned alike, whatever it points to.
using Event = std::shared_ptr<void>;

static std::atomic<int64_t> live_events{0};

Event Create(void *manager, bool timing, bool blocking, bool record) __asm__(CREATE);
bool Destroy(void *manager, const Event &event) __asm__(DESTROY);

template <typename Function>
static Function Original(const char *name) {
  void *plugin = dlopen("libmindspore_ascend_res_manager.so", RTLD_LAZY | RTLD_NOLOAD);
  void *found = plugin == nullptr ? nullptr : dlsym(plugin, name);
  if (found == nullptr) {
    fprintf(stderr, "hyper-repro: this MindSpore has no %s to count events by; 2.10.0 has\n", name);
    _Exit(86);
  }
  return reinterpret_cast<Function>(found);
}

Event Create(void *manager, bool timing, bool blocking, bool record) {
  static const auto original = Original<Event (*)(void *, bool, bool, bool)>(CREATE);
  Event event = original(manager, timing, blocking, record);
  if (event != nullptr) ++live_events;
  return event;
}

bool Destroy(void *manager, const Event &event) {
  static const auto original = Original<bool (*)(void *, const Event &)>(DESTROY);
  const bool destroyed = original(manager, event);
  if (destroyed) --live_events;
  return destroyed;
}

extern "C" int64_t hyper_repro_live_events() { return live_events; }
