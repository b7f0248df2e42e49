/* What every generated function without a stand-in calls: it names the symbol on stderr and ends the process. */
#include "unserved.h"

#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <unistd.h>

namespace {
// repro/sim/environment.py knows the same number: EXIT_UNSERVED.
constexpr int kExitUnserved = 86;
}  // namespace

extern "C" void hyper_repro_unserved(const char *symbol) {
  int status = -1;
  char *readable = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  char line[4096];
  const int length = snprintf(line, sizeof(line),
                              "hyper-repro cann-sim: unserved CANN symbol %s was called; it has no stand-in "
                              "(images/cann-sim/README.md: how to add one)\n",
                              status == 0 ? readable : symbol);
  const size_t size = length < static_cast<int>(sizeof(line)) ? static_cast<size_t>(length) : sizeof(line) - 1;
  // write and _exit, not fprintf and exit: exit handlers would run the plugin's teardown in an unknown state.
  if (write(STDERR_FILENO, line, size) < 0) {
    _exit(kExitUnserved);
  }
  _exit(kExitUnserved);
}
