/* Whether a word of the command line is a file's or a bucket's. It never depends on what happens to
 * lie on the disk. */
#ifndef CLIENT_COMMANDS_FILE_WORD_H
#define CLIENT_COMMANDS_FILE_WORD_H

#include <stdbool.h>

bool file_word_is_path(const char *word);  /* begins with /, ./ or ../, or is . or .. */
bool file_word_is_stdin(const char *word); /* "-": stdin or stdout */

#endif
