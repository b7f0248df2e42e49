/* Stand-in for libopapi: MindSpore opens it for aclnn kernels, which simulation skips; only its start and end are called. */
int aclnnInit(const char *configuration) {
  (void)configuration;
  return 0;
}
int aclnnFinalize(void) { return 0; }
