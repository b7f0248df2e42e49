// What comm_handle_events.cc knows of MindSpore 2.10.0 on 64-bit Linux: where two members lie, in bytes. layout_check.cc compares
// these numbers with the headers that the wheel ships, at every build.
#ifndef HYPER_REPRO_FIXES_NATIVE_LAYOUT_H_
#define HYPER_REPRO_FIXES_NATIVE_LAYOUT_H_
#include <cstddef>

constexpr std::size_t kEventInCommHandle = 0x10;
constexpr std::size_t kContextInCommHandle = 0x70;
constexpr std::size_t kManagerInContext = 0x10;
#endif  // HYPER_REPRO_FIXES_NATIVE_LAYOUT_H_
