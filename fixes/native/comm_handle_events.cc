// Stands in front of mindspore::kernel::pyboost::CommHandle::~CommHandle(), whose original destroys the device's event but leaves the
// object that held it in AscendResManager's list for ever (report 301). Here the manager's own DestroyEvent is asked to do both, as
// soon as the event is over. An event that is still pending waits on a bounded list and is looked at when the next handle dies.
// Loaded with ctypes.CDLL(path, RTLD_GLOBAL) before `import mindspore`; the rest of the handle is destroyed by the original.
#include <dlfcn.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <typeinfo>
#include <utility>

#include "layout.h"

#define DESTRUCTOR "_ZN9mindspore6kernel7pyboost10CommHandleD1Ev"
#define DESTRUCTOR_OF_BASE "_ZN9mindspore6kernel7pyboost10CommHandleD2Ev"
#define DESTROY "_ZN9mindspore6device6ascend16AscendResManager12DestroyEventERKSt10shared_ptrINS_11DeviceEventEE"
#define QUERY "_ZN9mindspore6device6ascend11AscendEvent10QueryEventEv"
#define MANAGER "N9mindspore6device6ascend16AscendResManagerE"
#define EVENT "N9mindspore6device6ascend11AscendEventE"

namespace {
// Only to read the type of an object through its table of virtual functions, which both classes have.
struct Polymorphic {
  virtual ~Polymorphic() = default;
};
using Event = std::shared_ptr<Polymorphic>;
using Destroy = bool (*)(void *manager, const Event &event);
using Query = bool (*)(void *event);
using Destructor = void (*)(void *handle);

struct Pending {
  Event event;
  void *manager;
};

constexpr std::size_t kMostPending = 4096;
constexpr int kLooksADeath = 8;  // of pending events, so that no destructor takes long

std::atomic<bool> on{false};
std::atomic<int64_t> destroyed{0}, deferred{0}, left{0};
std::mutex guard;
std::size_t in_hand = 0;  // taken off the list to be looked at, and still counted against its bound
// Never deleted: at exit its events must not be released after the library that knows them.
std::list<Pending> *const pending = new std::list<Pending>;

void *Plugin() { return dlopen("libmindspore_ascend_res_manager.so", RTLD_LAZY | RTLD_NOLOAD); }

// Not RTLD_NEXT: that looks among the libraries that this one was linked against, and it was linked against none.
Destructor Original() {
  void *pyboost = dlopen("libmindspore_pyboost.so", RTLD_LAZY | RTLD_NOLOAD);
  return reinterpret_cast<Destructor>(pyboost == nullptr ? nullptr : dlsym(pyboost, DESTRUCTOR));
}

// A library that counts events stands in front of this one, too, and must see what is destroyed: global order goes first.
Destroy FindDestroy() {
  void *found = dlsym(RTLD_DEFAULT, DESTROY);
  void *plugin = found == nullptr ? Plugin() : nullptr;
  return reinterpret_cast<Destroy>(plugin == nullptr ? found : dlsym(plugin, DESTROY));
}

Query FindQuery() {
  void *plugin = Plugin();
  return reinterpret_cast<Query>(plugin == nullptr ? nullptr : dlsym(plugin, QUERY));
}

template <typename Type>
Type &At(void *object, std::size_t offset) {
  return *reinterpret_cast<Type *>(static_cast<char *>(object) + offset);
}

bool Is(const Polymorphic *object, const char *name) { return std::strcmp(typeid(*object).name(), name) == 0; }

// The manager of the handle's device; null on another device than Ascend.
void *ManagerOf(void *handle) {
  void *context = At<void *>(handle, kContextInCommHandle);
  auto *manager = context == nullptr ? nullptr : At<Polymorphic *>(context, kManagerInContext);
  return manager != nullptr && Is(manager, MANAGER) ? manager : nullptr;
}

// True if the event is gone; false if it is pending or could not be asked.
bool DestroyIfOver(const Pending &one) {
  static const Destroy destroy = FindDestroy();
  static const Query over = FindQuery();
  if (destroy == nullptr || over == nullptr || !over(one.event.get()) || !destroy(one.manager, one.event)) return false;
  ++destroyed;
  return true;
}

void Reap() {
  std::list<Pending> looked;
  {
    const std::lock_guard<std::mutex> lock(guard);
    for (int i = 0; i < kLooksADeath && !pending->empty(); ++i) {
      looked.splice(looked.end(), *pending, pending->begin());
    }
    in_hand += looked.size();
  }
  const std::size_t taken = looked.size();
  // Whatever MindSpore's query throws, what was not destroyed goes back.
  const auto put_back = [&]() noexcept {
    const std::lock_guard<std::mutex> lock(guard);
    in_hand -= taken;
    pending->splice(pending->end(), looked);
  };
  try {
    looked.remove_if(DestroyIfOver);
  } catch (...) {
    put_back();
    throw;
  }
  put_back();
}

// True if the event was taken over: destroyed, or on the list.
bool TakeOver(const Pending &one) {
  if (DestroyIfOver(one)) return true;
  const std::lock_guard<std::mutex> lock(guard);
  if (pending->size() + in_hand >= kMostPending) return false;
  pending->push_back(one);
  ++deferred;
  return true;
}

void End(void *handle) {
  static const Destructor original = Original();
  auto &event = At<Event>(handle, kEventInCommHandle);
  if (on.load() && event != nullptr && Is(event.get(), EVENT)) {
    void *manager = ManagerOf(handle);
    try {
      if (manager != nullptr) {
        Reap();
        // Without its event, the original destructor does the rest and destroys none a second time.
        if (TakeOver({event, manager})) {
          event.reset();
        } else {
          ++left;
        }
      }
    } catch (...) {
      // A destructor must not throw, and MindSpore's query does when the device has failed: then nothing is mended.
      ++left;
    }
  }
  original(handle);
}
}  // namespace

void EndComplete(void *handle) __asm__(DESTRUCTOR);
void EndComplete(void *handle) { End(handle); }
void EndBase(void *handle) __asm__(DESTRUCTOR_OF_BASE);
void EndBase(void *handle) { End(handle); }

extern "C" {
// Switched off before MindSpore's own teardown: after it a handle's manager may be gone.
void hyper_repro_mend_events(int active) { on.store(active != 0); }
int64_t hyper_repro_events_destroyed() { return destroyed; }
int64_t hyper_repro_events_deferred() { return deferred; }
int64_t hyper_repro_events_left() { return left; }
int64_t hyper_repro_events_pending() {
  const std::lock_guard<std::mutex> lock(guard);
  return static_cast<int64_t>(pending->size() + in_hand);
}
// 1 if this library comes first in symbol order and the original is behind it; asked after MindSpore was loaded.
int hyper_repro_mend_in_place() {
  const bool first = dlsym(RTLD_DEFAULT, DESTRUCTOR) == reinterpret_cast<void *>(&EndComplete);
  return first && Original() != nullptr && Original() != &EndComplete;
}
}
