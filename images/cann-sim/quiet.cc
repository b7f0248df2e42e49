/* Turns off MindSpore's execute-order tracker, which is on whenever MS_SIMULATION_LEVEL is set.
 *
 * It keeps 600 to 700 B for every collective and writes rank_N/execute_order into the working directory; hardware does neither.
 * Loaded before MindSpore with RTLD_GLOBAL (repro.sim.environment.preload_quiet), this definition comes first in symbol order. */
namespace mindspore {
bool EnableExecuteOrderDump() { return false; }
}  // namespace mindspore
