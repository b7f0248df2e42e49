// Stands in for the two libraries of MindSpore that the mend of 301.3 looks up, under the same names and symbols, so that its own
// code can be driven by many threads at once and looked at by the thread sanitizer, which no process with MindSpore in it can be.
#include <atomic>
#include <cstdint>
#include <memory>

extern "C" {
extern std::atomic<int64_t> stand_in_destroyed_by_manager, stand_in_twice, stand_in_original;
extern std::atomic<bool> stand_in_over;
}

namespace mindspore::device::ascend {
struct AscendEvent {
  virtual ~AscendEvent() = default;
  std::atomic<bool> gone{false};
  bool always_over{false};
};
struct AscendResManager {
  virtual ~AscendResManager() = default;
};
}  // namespace mindspore::device::ascend

using Event = std::shared_ptr<mindspore::device::ascend::AscendEvent>;

#ifdef STAND_IN_MANAGER
bool DestroyEvent(void *, const Event &event) __asm__(
  "_ZN9mindspore6device6ascend16AscendResManager12DestroyEventERKSt10shared_ptrINS_11DeviceEventEE");
bool DestroyEvent(void *, const Event &event) {
  if (event->gone.exchange(true)) ++stand_in_twice;
  ++stand_in_destroyed_by_manager;
  return true;
}
bool QueryEvent(void *event) __asm__("_ZN9mindspore6device6ascend11AscendEvent10QueryEventEv");
bool QueryEvent(void *event) {
  return static_cast<mindspore::device::ascend::AscendEvent *>(event)->always_over || stand_in_over.load();
}
#elif defined(STAND_IN_HANDLE)
void Destructor(void *handle) __asm__("_ZN9mindspore6kernel7pyboost10CommHandleD1Ev");
void Destructor(void *) { ++stand_in_original; }
#else
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <thread>
#include <vector>

#include "layout.h"

std::atomic<int64_t> stand_in_destroyed_by_manager{0}, stand_in_twice{0}, stand_in_original{0};
std::atomic<bool> stand_in_over{false};

namespace {
using Destructor = void (*)(void *);
mindspore::device::ascend::AscendResManager manager;
struct Context {
  char before[kManagerInContext];
  void *manager;
} context{{}, &manager};

void EndOne(Destructor end, bool over) {
  alignas(16) char handle[kContextInCommHandle + sizeof(void *)] = {};
  auto event = std::make_shared<mindspore::device::ascend::AscendEvent>();
  event->always_over = over;
  auto *held = new (handle + kEventInCommHandle) Event(event);
  *reinterpret_cast<void **>(handle + kContextInCommHandle) = &context;
  end(handle);
  held->~Event();
}

void EndMany(Destructor end, int threads, int each, bool mixed) {
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([=] {
      for (int i = 0; i < each; ++i) EndOne(end, mixed && i % 2 == 0);
    });
  }
  for (auto &thread : running) thread.join();
}

void *Open(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  return library;
}
}  // namespace

// stand-in MEND: half the events over, half pending and beyond what the list holds; then all over; then switched off.
int main(int, char **argv) {
  void *mend = Open(argv[1]);
  Open("libmindspore_ascend_res_manager.so");
  Open("libmindspore_pyboost.so");
  const auto count = [&](const char *name) { return reinterpret_cast<int64_t (*)()>(dlsym(mend, name))(); };
  const auto on = reinterpret_cast<void (*)(int)>(dlsym(mend, "hyper_repro_mend_events"));
  const auto end = reinterpret_cast<Destructor>(dlsym(mend, "_ZN9mindspore6kernel7pyboost10CommHandleD1Ev"));
  const auto tell = [&](const char *what) {
    printf("%s %ld %ld %ld %ld %ld %ld %ld\n", what, count("hyper_repro_events_destroyed"), count("hyper_repro_events_deferred"),
           count("hyper_repro_events_left"), count("hyper_repro_events_pending"), stand_in_destroyed_by_manager.load(),
           stand_in_twice.load(), stand_in_original.load());
  };
  on(1);
  EndMany(end, 8, 2000, true);
  tell("pending");
  stand_in_over = true;
  EndMany(end, 8, 200, false);
  tell("over");
  on(0);
  EndMany(end, 8, 100, false);
  tell("off");
  return 0;
}
#endif
