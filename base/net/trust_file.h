/* The file with the CAs that the system trusts. Distributions keep it in different places, and a
 * libcurl that was built for one of them looks in that one's place alone. */
#ifndef BASE_NET_TRUST_FILE_H
#define BASE_NET_TRUST_FILE_H

/* Where the usual distributions keep it: a list with NULL at the end. */
extern const char *const TRUST_FILE_PLACES[];

/* Returns the file that takes the place of `own`, the file or folder that libcurl was built with:
 * the first of `places` that can be read. Returns NULL where none is needed, because `own` can be
 * read or is NULL (libcurl then has another kind of store), and where none of `places` can be read.
 * Any thread. */
const char *trust_file_instead(const char *own, const char *const places[]);

#endif
