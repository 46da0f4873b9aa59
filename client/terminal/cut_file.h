/* Files are read as memory: where somebody cuts one off meanwhile, the system sends SIGBUS. From
 * now on that ends the process with a sentence and EXIT_CODE_MALFORMED, where it would end with
 * "Bus error". For the whole process; call once. */
#ifndef CLIENT_TERMINAL_CUT_FILE_H
#define CLIENT_TERMINAL_CUT_FILE_H

void cut_file_guard(void);

#endif
