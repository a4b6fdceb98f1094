/* Python's limited interface of 3.11: what is built runs there and on all newer ones. */

#ifndef ROPEWAY_LIMITED_H
#define ROPEWAY_LIMITED_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* Whether an object is a List, Tuple or Bytes; only of other types is it a call. */
#define IS_A(kind, object) \
    (Py_IS_TYPE(object, &Py##kind##_Type) || Py##kind##_Check(object))

/* Says what something has to be and is not; gives 0. */
static inline int is_not(PyObject *object, const char *what, const char *wanted)
{
    PyObject *name = PyType_GetName(Py_TYPE(object));
    if (name != NULL)
        PyErr_Format(PyExc_TypeError, "%s %s, not %.80U", what, wanted, name);
    Py_XDECREF(name);
    return 0;
}

#endif
