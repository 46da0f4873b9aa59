/* The console's own files: GET and HEAD of /console/ and below. They are embedded in the program
 * (file_list.h), so nothing that somebody stored can be served there. docs/protocol/admin.md. */
#ifndef API_CONSOLE_CONSOLE_FILE_H
#define API_CONSOLE_CONSOLE_FILE_H

#include "api/exchange/exchange.h"

/* The page at /console/. /console leads there, because the page's links are relative to it. */
enum next console_page_begin(struct exchange *exchange);
/* The file whose path below /console/ is parameter 0. */
enum next console_file_begin(struct exchange *exchange);

#endif
