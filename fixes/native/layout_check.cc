// Compiled, never linked: holds layout.h against the headers of the installed MindSpore.
// Standard headers first, so that they are not read with the redefined keyword.
#include <algorithm>
#include <any>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <functional>
#include <iostream>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>
// The header of device addresses is left out: it brings pybind11 along, and so Python's own headers, for one template.
#define MINDSPORE_CCSRC_INCLUDE_BACKEND_COMMON_DEVICE_ADDRESS_UTILS_H_
namespace mindspore {
template <typename T>
struct is_optional : std::false_type {};
}  // namespace mindspore
#define private public
#include "include/pynative/utils/pyboost/comm_handle.h"
#undef private
#include "layout.h"

using mindspore::device::DeviceContext;
using mindspore::kernel::pyboost::CommHandle;
static_assert(offsetof(CommHandle, event_) == kEventInCommHandle, "CommHandle::event_ lies elsewhere");
static_assert(offsetof(CommHandle, device_ctx_) == kContextInCommHandle, "CommHandle::device_ctx_ lies elsewhere");
static_assert(offsetof(DeviceContext, device_res_manager_) == kManagerInContext, "DeviceContext lies otherwise");
static_assert(sizeof(mindspore::DeviceEventPtr) == 16 && sizeof(std::unique_ptr<int>) == 8, "pointers of another size");
