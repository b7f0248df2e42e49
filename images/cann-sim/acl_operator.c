/* Stand-in for the part of the operator interface that MindSpore has no simulated twin for: attributes of legacy operators. */

/* One handle for all: its setters (served-generically.txt) drop what they are given, MindSpore never frees it, and nobody reads it. */
static char any_attributes[64];
void *aclopCreateAttr(void) { return any_attributes; }
