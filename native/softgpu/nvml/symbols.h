/* For the generated stubs. */
int sg_call_unsupported(unsigned index, const char *name);
