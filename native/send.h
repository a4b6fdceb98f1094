#define PLAIN_SEND_START "{\"code\":310,"

PyObject *plain_send(PyObject *module, PyObject *header);
