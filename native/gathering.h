/* What stands in a stretch of a log, by partition: gathering.c. */

#include "limited.h"

void gather_prepare(void);
PyObject *gather(PyObject *module, PyObject *stretch);
