#define PLAIN_SEND_START "{\"code\":310,"

PyObject *read_send(PyObject *module, PyObject *const *args, Py_ssize_t given);
