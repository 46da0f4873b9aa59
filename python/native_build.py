"""Makes the extension module deltabucket._native from library/deltabucket.h.

The declarations for cffi are derived from the header at each build, so there is no second copy of
them. What this script does not understand ends the build. setup.py names `ffibuilder`.
"""
import os
import re

import cffi

HERE = os.path.dirname(os.path.abspath(__file__))
# In an sdist the C sources lie beside this file, in a checkout above it.
CORES = (os.path.join(HERE, 'core'), os.path.dirname(HERE))
COMMENT = re.compile(r'/\*.*?\*/', re.S)
MACRO = re.compile(r'^#define (\w+)(?:[^\\\n]|\\\n)*$', re.M)
CONDITION = re.compile(r'^#(?:ifndef|ifdef|endif|include|define DELTABUCKET_H\b).*$', re.M)
# What C++ compilers read in another way; what is for C alone goes with it.
CPLUSPLUS = re.compile(r'^#ifdef __cplusplus\n.*?^#endif$', re.M | re.S)
FUNCTION = re.compile(r'^DELTABUCKET_API [^;]*?\b(deltabucket_\w+)\(', re.M)
CALLBACKS = '''
extern "Python" {
    void deltabucket_python_progress(void *, const char *, uint64_t, uint64_t);
    void deltabucket_python_note(void *, const char *);
    void deltabucket_python_warn(void *, const char *);
    int deltabucket_python_object(void *, const struct deltabucket_object *);
    int deltabucket_python_changes(void *, const uint64_t *, const void *, size_t);
    void deltabucket_python_told(void *, const char *, const char *, uint64_t);
    int deltabucket_python_answer(void *, const char *, size_t);
}
'''


def core_folder():
    """The folder that holds configure.ac and library/deltabucket.h."""
    for folder in CORES:
        if os.path.exists(os.path.join(folder, 'library', 'deltabucket.h')):
            return folder
    raise SystemExit('deltabucket: library/deltabucket.h is missing: build from a whole checkout '
                     'or from an sdist.')


def core_version(folder):
    """The version of the C sources, as configure.ac has it."""
    with open(os.path.join(folder, 'configure.ac')) as file:
        found = re.search(r'^AC_INIT\(\[deltabucket\], \[([0-9][^\]]*)\]\)$', file.read(), re.M)
    if not found:
        raise SystemExit('deltabucket: configure.ac has no AC_INIT with a version.')
    return found[1]


def defaults_of(text):
    """The macros that make every member of a struct its default: {struct's name: macro's name}."""
    macros = {match[1] for match in MACRO.finditer(text)} - {'DELTABUCKET_H', 'DELTABUCKET_API'}
    structs = set(re.findall(r'^struct (deltabucket_\w+) \{', text, re.M))
    found = {name: name.upper() for name in sorted(structs) if name.upper() in macros}
    unknown = macros - set(found.values())
    if unknown:
        raise SystemExit(f'deltabucket.h: the macros {sorted(unknown)} belong to no struct.')
    return found


def declarations_of(header):
    """(declarations for cffi, {struct: macro of its defaults}) of the text of deltabucket.h."""
    text = CPLUSPLUS.sub('', COMMENT.sub('', header))
    defaults = defaults_of(text)
    functions = FUNCTION.findall(text)
    text = CONDITION.sub('', MACRO.sub('', text))
    text = text.replace('DELTABUCKET_API ', '')
    for wrong in ('#', '__attribute__', 'DELTABUCKET_API', 'extern', '\\'):
        if wrong in text:
            line = next(line for line in text.split('\n') if wrong in line)
            raise SystemExit(f'deltabucket.h: cannot be read for cffi: {line}')
    if len(functions) != len(re.findall(r'^DELTABUCKET_API', header, re.M)) or not functions:
        raise SystemExit('deltabucket.h: a line with DELTABUCKET_API declares no function.')
    return text, defaults


def make_builder():
    core = core_folder()
    path = os.path.join(core, 'library', 'deltabucket.h')
    with open(path) as file:
        declarations, defaults = declarations_of(file.read())
    setters = {f'deltabucket_python_{name[len("deltabucket_"):]}': (name, macro)
               for name, macro in defaults.items()}
    builder = cffi.FFI()
    builder.cdef(declarations)
    builder.cdef('const char *deltabucket_python_version(void);')
    for setter, (name, _) in setters.items():
        builder.cdef(f'void {setter}(struct {name} *out);')
    builder.cdef(CALLBACKS)
    source = '#include "deltabucket.h"\n'
    source += (f'static const char *deltabucket_python_version(void)\n'
               f'{{\n\treturn "{core_version(core)}";\n}}\n')
    for setter, (name, macro) in setters.items():
        source += (f'static void {setter}(struct {name} *out)\n'
                   f'{{\n\tconst struct {name} made = {macro};\n\t*out = made;\n}}\n')
    builder.set_source('deltabucket._native', source, include_dirs=[os.path.dirname(path)])
    return builder


ffibuilder = make_builder()
