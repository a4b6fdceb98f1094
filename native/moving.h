/* Stored messages at another place, and those that wait for one: moving.c. */

#include "bytes.h"

#define BORN_HOST_V6 0x10
#define STORE_HOST_V6 0x20

PyObject *records_in(PyObject *module, PyObject *data);
PyObject *waiting_in(PyObject *module, PyObject *data);
PyObject *committed(PyObject *module, PyObject *const *args, Py_ssize_t given);
PyObject *moved_all(PyObject *module, PyObject *const *args, Py_ssize_t given);
