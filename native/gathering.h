/* What stands in a stretch of a log, by partition: gathering.c. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>

void gather_prepare(void);
PyObject *gather(PyObject *module, PyObject *stretch);
