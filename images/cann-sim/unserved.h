/* The one way a call without a stand-in ends: a line on stderr and exit code 86, never a segmentation fault. */
#ifndef HYPER_REPRO_UNSERVED_H
#define HYPER_REPRO_UNSERVED_H
#ifdef __cplusplus
extern "C" {
#endif
__attribute__((noreturn)) void hyper_repro_unserved(const char *symbol);
#ifdef __cplusplus
}
#endif
#endif
