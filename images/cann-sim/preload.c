/* Loaded before MindSpore (repro.sim.environment.preload_quiet, or LD_PRELOAD): definitions here come first in symbol order and
 * replace those of the wheel that make a simulated rank behave as no hardware does. Labels are the C++ names of the wheel. */
#include <stddef.h>
#include <stdlib.h>

/* mindspore::EnableExecuteOrderDump(): whether to track the order of collectives. It is true whenever MS_SIMULATION_LEVEL is set; the
 * tracker then keeps 600 to 700 B for every collective and writes rank_N/execute_order into the working directory. */
int TracksOrder(void) __asm__("_ZN9mindspore22EnableExecuteOrderDumpEv");
int TracksOrder(void) { return 0; }

/* mindspore::device::ascend::SimuFuncIaclrtMallocHost and ...FreeHost: in simulation MindSpore numbers allocations of pinned host
 * memory 8, 16, 24 ... instead of making them, and then copies to that address: Tensor.pin_memory() was a segmentation fault. */
int AllocatePinned(void **result, size_t size)
  __asm__("_ZN9mindspore6device6ascend24SimuFuncIaclrtMallocHostIiPvEET_PT0_m");
int AllocatePinned(void **result, size_t size) {
  return posix_memalign(result, 64, size ? size : 64) ? 200000 : 0;
}
int FreePinned(void *memory) __asm__("_ZN9mindspore6device6ascend22SimuFuncIaclrtFreeHostIiEET_Pv");
int FreePinned(void *memory) {
  free(memory);
  return 0;
}

/* mindspore::device::ascend::SimuFuncIaclrtQueryEventStatus and ...StreamQuery: in simulation they leave the answer unwritten, so that
 * no event is ever over and no stream ever idle. Nothing is ever pending here: an event is recorded (1), a stream complete (0). */
int EventStatus(void *event, int *status)
  __asm__("_ZN9mindspore6device6ascend30SimuFuncIaclrtQueryEventStatusIiEET_PvP24aclrtEventRecordedStatus");
int EventStatus(void *event, int *status) {
  (void)event;
  *status = 1;
  return 0;
}
int StreamStatus(void *stream, int *status)
  __asm__("_ZN9mindspore6device6ascend25SimuFuncIaclrtStreamQueryIiEET_PvP17aclrtStreamStatus");
int StreamStatus(void *stream, int *status) {
  (void)stream;
  *status = 0;
  return 0;
}
