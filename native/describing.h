/* The compiled form of gateway/wire/compaction_rows.py. */

#ifndef ROPEWAY_DESCRIBING_H
#define ROPEWAY_DESCRIBING_H

#include "limited.h"

PyObject *describe(PyObject *module, PyObject *data);

#endif
