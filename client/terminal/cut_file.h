/* The program maps files into memory. When another process truncates a mapped file, the system
 * sends SIGBUS. cut_file_guard makes SIGBUS end the process with a sentence that names the file,
 * and EXIT_CODE_MALFORMED, instead of "Bus error". It applies to the whole process; call it once. */
#ifndef CLIENT_TERMINAL_CUT_FILE_H
#define CLIENT_TERMINAL_CUT_FILE_H

void cut_file_guard(void);

#endif
