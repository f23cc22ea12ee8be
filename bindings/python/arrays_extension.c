/* rdna.arrays' arrays as objects of CPython, and the calls that eager programs make most often: an operation on a few
 * values would otherwise spend half of its time in Python and ctypes. Everything else goes through ctypes, and where
 * this module is not there, so do these. Python's stable interface from 3.9 on: one binary for all of them. librdna's
 * functions come as addresses, from who has loaded it. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <structmember.h>

#include "rdna/array.h"

/* The slots that src of rdna/arrays/_array.py has; NULL is None. */
typedef struct array {
  PyObject_HEAD rdna_array *pointer;
  PyObject *shape, *dtype, *kind, *weak;
  char pairs;
} array;

enum { ADD, SUB, MUL, DIV, ZIPS, NEG = 0, ABS, MAPS };

/* What setup() was given. */
static struct {
  PyTypeObject *type;                   /* Array */
  PyObject *fail;                       /* of a status: raises */
  PyObject *binary[ZIPS], *unary[MAPS]; /* in Python, for what is not here */
  int zips[ZIPS], maps[MAPS];
  rdna_status (*map)(rdna_array *, rdna_map, rdna_scalar, rdna_scalar, rdna_array **);
  rdna_status (*zip)(rdna_array *, rdna_array *, rdna_zip, rdna_scalar, rdna_scalar, rdna_array **);
  rdna_status (*zip_number)(rdna_array *, rdna_scalar, bool, rdna_zip, rdna_scalar, rdna_scalar, rdna_array **);
  const rdna_tensor *(*tensor)(const rdna_array *);
  void (*release)(rdna_array *);
  void (*dlpack_release)(void *, bool);
} with;

static const rdna_scalar zero;

/* ---- the object ---- */

static int init(PyObject *self, PyObject *arguments, PyObject *keywords) {
  array *a = (array *)self;
  PyObject *pointer;
  int pairs = 0;
  static char *names[] = {"pointer", "pairs", NULL};
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "O|p", names, &pointer, &pairs)) return -1;
  void *address = pointer == Py_None ? NULL : PyLong_AsVoidPtr(pointer);
  if (!address && PyErr_Occurred()) return -1;
  a->pointer = address;
  a->pairs = (char)pairs;
  return 0;
}

static void dealloc(PyObject *self) {
  array *a = (array *)self;
  PyTypeObject *type = Py_TYPE(self);
  if (a->weak) PyObject_ClearWeakRefs(self);
  if (a->pointer && with.release) with.release(a->pointer);
  Py_XDECREF(a->shape);
  Py_XDECREF(a->dtype);
  Py_XDECREF(a->kind);
  ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

static PyObject *get_pointer(PyObject *self, void *ignored) {
  void *pointer = ((array *)self)->pointer;
  if (!pointer) Py_RETURN_NONE;
  return PyLong_FromVoidPtr(pointer);
}
static int set_pointer(PyObject *self, PyObject *value, void *ignored) {
  void *address = !value || value == Py_None ? NULL : PyLong_AsVoidPtr(value);
  if (!address && PyErr_Occurred()) return -1;
  ((array *)self)->pointer = address;
  return 0;
}

static PyObject *kept(PyObject *value) {
  if (value == Py_None) value = NULL;
  Py_XINCREF(value);
  return value;
}

/* An array around |pointer|, of |like|'s shape and of its type, each if that is known and the same. */
static PyObject *made_of(rdna_array *pointer, const array *like, bool shape, bool dtype) {
  PyObject *self = PyType_GenericAlloc(with.type, 0);
  if (!self) {
    with.release(pointer);
    return NULL;
  }
  array *a = (array *)self;
  a->pointer = pointer;
  if (shape) a->shape = kept(like->shape);
  if (dtype) a->dtype = kept(like->dtype);
  return self;
}

static PyObject *fail(rdna_status status) {
  PyObject *ignored = PyObject_CallFunction(with.fail, "i", (int)status);
  Py_XDECREF(ignored);
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "a call of librdna failed");
  return NULL;
}

/* ---- operations ---- */

static bool is_real(PyObject *x) { return Py_TYPE(x) == with.type && !((array *)x)->pairs && ((array *)x)->pointer; }
static bool is_float(const array *a) {
  rdna_dtype dtype = with.tensor(a->pointer)->dtype;
  return dtype == RDNA_F32 || dtype == RDNA_F64 || dtype == RDNA_F16 || dtype == RDNA_BF16;
}

static PyObject *map(PyObject *x, int op) {
  array *a = (array *)x;
  rdna_array *out = NULL;
  rdna_status status;
  bool real = is_float(a);
  Py_BEGIN_ALLOW_THREADS status = with.map(a->pointer, (rdna_map)op, zero, zero, &out);
  Py_END_ALLOW_THREADS return status == RDNA_OK ? made_of(out, a, true, real) : fail(status);
}

static PyObject *zip(array *a, array *b, int op) {
  rdna_array *out = NULL;
  rdna_status status;
  bool alike = a->dtype && a->dtype == b->dtype && is_float(a), shape = false;
  if (alike && a->shape && b->shape && a->shape != Py_None)
    shape = PyObject_RichCompareBool(a->shape, b->shape, Py_EQ) == 1;
  Py_BEGIN_ALLOW_THREADS status = with.zip(a->pointer, b->pointer, (rdna_zip)op, zero, zero, &out);
  Py_END_ALLOW_THREADS return status == RDNA_OK ? made_of(out, a, shape, alike) : fail(status);
}

static PyObject *zip_number(array *a, double number, bool first, int op) {
  rdna_array *out = NULL;
  rdna_status status;
  Py_BEGIN_ALLOW_THREADS status =
      with.zip_number(a->pointer, (rdna_scalar){number, 0}, first, (rdna_zip)op, zero, zero, &out);
  Py_END_ALLOW_THREADS return status == RDNA_OK ? made_of(out, a, true, true) : fail(status);
}

static PyObject *binary(PyObject *x, PyObject *y, int i) {
  bool first = is_real(x), second = is_real(y);
  if (first && second) return zip((array *)x, (array *)y, with.zips[i]);
  if (first && PyFloat_CheckExact(y) && is_float((array *)x))
    return zip_number((array *)x, PyFloat_AsDouble(y), false, with.zips[i]);
  if (second && PyFloat_CheckExact(x) && is_float((array *)y))
    return zip_number((array *)y, PyFloat_AsDouble(x), true, with.zips[i]);
  if (!with.binary[i]) Py_RETURN_NOTIMPLEMENTED;
  return PyObject_CallFunctionObjArgs(with.binary[i], x, y, NULL);
}
static PyObject *unary(PyObject *x, int i) {
  if (is_real(x)) return map(x, with.maps[i]);
  return PyObject_CallFunctionObjArgs(with.unary[i], x, NULL);
}

static PyObject *add(PyObject *x, PyObject *y) { return binary(x, y, ADD); }
static PyObject *subtract(PyObject *x, PyObject *y) { return binary(x, y, SUB); }
static PyObject *multiply(PyObject *x, PyObject *y) { return binary(x, y, MUL); }
static PyObject *divide(PyObject *x, PyObject *y) { return binary(x, y, DIV); }
static PyObject *negative(PyObject *x) { return unary(x, NEG); }
static PyObject *absolute(PyObject *x) { return unary(x, ABS); }

static PyMemberDef members[] = {{"_shape", T_OBJECT, offsetof(array, shape), 0, NULL},
                                {"_dtype", T_OBJECT, offsetof(array, dtype), 0, NULL},
                                {"_kind", T_OBJECT, offsetof(array, kind), 0, NULL},
                                {"pairs", T_BOOL, offsetof(array, pairs), 0, NULL},
                                {"__weaklistoffset__", T_PYSSIZET, offsetof(array, weak), READONLY, NULL},
                                {NULL, 0, 0, 0, NULL}};
static PyGetSetDef properties[] = {{"pointer", get_pointer, set_pointer, NULL, NULL}, {NULL, NULL, NULL, NULL, NULL}};
static PyType_Slot slots[] = {{Py_tp_init, init},
                              {Py_tp_dealloc, dealloc},
                              {Py_tp_members, members},
                              {Py_tp_getset, properties},
                              {Py_nb_add, add},
                              {Py_nb_subtract, subtract},
                              {Py_nb_multiply, multiply},
                              {Py_nb_true_divide, divide},
                              {Py_nb_negative, negative},
                              {Py_nb_absolute, absolute},
                              {0, NULL}};
static PyType_Spec spec = {"rdna_arrays.Base", sizeof(array), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};

/* ---- functions of one array: |self| is (number of the map, the function in Python) ---- */

static PyObject *call_map(PyObject *self, PyObject *x) {
  if (is_real(x)) return map(x, (int)PyLong_AsLong(PyTuple_GetItem(self, 0)));
  return PyObject_CallFunctionObjArgs(PyTuple_GetItem(self, 1), x, NULL);
}

/* map(number, function, name, text): a function that does map |number| of real arrays, and calls |function| for others.
 * Its name and text live as long as the process. */
static PyObject *make_map(PyObject *module, PyObject *arguments) {
  int number;
  PyObject *function;
  const char *name, *text;
  if (!PyArg_ParseTuple(arguments, "iOss", &number, &function, &name, &text)) return NULL;
  PyMethodDef *definition = calloc(1, sizeof *definition);
  char *own_name = strdup(name), *own_text = strdup(text);
  PyObject *self = Py_BuildValue("(iO)", number, function), *made = NULL;
  if (definition && own_name && own_text && self) {
    *definition = (PyMethodDef){own_name, call_map, METH_O, own_text};
    made = PyCFunction_NewEx(definition, self, NULL);
  }
  Py_XDECREF(self);
  if (made) return made;
  free(definition);
  free(own_name);
  free(own_text);
  return PyErr_Occurred() ? NULL : PyErr_NoMemory();
}

/* ---- capsules of DLPack ---- */

/* Runs wherever the last reference goes, also while an exception is on its way, which stays. */
static void drop_capsule(PyObject *capsule) {
  static const char *const names[] = {"dltensor", "dltensor_versioned"};
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  for (int versioned = 0; versioned < 2; versioned++) {
    if (!PyCapsule_IsValid(capsule, names[versioned])) continue;
    with.dlpack_release(PyCapsule_GetPointer(capsule, names[versioned]), versioned);
    break;
  }
  PyErr_Restore(type, value, trace);
}

/* capsule_destructor(address of rdna_dlpack_release): the address of what lets go of a capsule that nobody took. */
static PyObject *capsule_destructor(PyObject *module, PyObject *release) {
  void *address = PyLong_AsVoidPtr(release), *made;
  if (!address) return PyErr_Occurred() ? NULL : PyErr_Format(PyExc_ValueError, "capsule_destructor needs an address");
  memcpy(&with.dlpack_release, &address, sizeof with.dlpack_release);
  PyCapsule_Destructor destructor = drop_capsule;
  memcpy(&made, &destructor, sizeof made);
  return PyLong_FromVoidPtr(made);
}

/* setup(type, fail, addresses, zips, maps, binary, unary), the last four as long as the enumerations. */
static PyObject *setup(PyObject *module, PyObject *arguments) {
  PyObject *type, *fails;
  unsigned long long at[5];
  if (!PyArg_ParseTuple(arguments, "OO(KKKKK)(iiii)(ii)(OOOO)(OO)", &type, &fails, &at[0], &at[1], &at[2], &at[3],
                        &at[4], &with.zips[ADD], &with.zips[SUB], &with.zips[MUL], &with.zips[DIV], &with.maps[NEG],
                        &with.maps[ABS], &with.binary[ADD], &with.binary[SUB], &with.binary[MUL], &with.binary[DIV],
                        &with.unary[NEG], &with.unary[ABS]))
    return NULL;
  for (int i = 0; i < ZIPS; i++) Py_INCREF(with.binary[i]);
  for (int i = 0; i < MAPS; i++) Py_INCREF(with.unary[i]);
  Py_INCREF(type);
  Py_INCREF(fails);
  with.type = (PyTypeObject *)type;
  with.fail = fails;
  memcpy(&with.map, &at[0], sizeof with.map);
  memcpy(&with.zip, &at[1], sizeof with.zip);
  memcpy(&with.zip_number, &at[2], sizeof with.zip_number);
  memcpy(&with.tensor, &at[3], sizeof with.tensor);
  memcpy(&with.release, &at[4], sizeof with.release);
  Py_RETURN_NONE;
}

static PyMethodDef functions[] = {{"setup", setup, METH_VARARGS, NULL},
                                  {"capsule_destructor", capsule_destructor, METH_O, NULL},
                                  {"map", make_map, METH_VARARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "rdna_arrays", NULL, -1, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_rdna_arrays(void);
PyMODINIT_FUNC PyInit_rdna_arrays(void) {
  PyObject *module = PyModule_Create(&definition), *base = PyType_FromSpec(&spec);
  if (module && base && PyModule_AddObject(module, "Base", base) == 0) return module;
  Py_XDECREF(base);
  Py_XDECREF(module);
  return NULL;
}
