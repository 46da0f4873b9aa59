/* Whether a word of the command line names a file or something in a bucket. Only the spelling
 * decides, never what happens to be on the disk. */
#ifndef CLIENT_COMMANDS_FILE_WORD_H
#define CLIENT_COMMANDS_FILE_WORD_H

#include <stdbool.h>

bool file_word_is_path(const char *word);  /* begins with /, ./ or ../, or is . or .. */
bool file_word_is_stdin(const char *word); /* "-": stdin or stdout */

#endif
