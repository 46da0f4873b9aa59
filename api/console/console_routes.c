/* The console: files for browsers. What they show and do goes through the other faces. */
#include "api/route/router.h"

#include "api/console/console_file.h"

enum { GET_HEAD = METHOD_GET | METHOD_HEAD };

const struct route console_routes[] = {
	{GET_HEAD, "/console", NULL, ACCESS_ANYONE, BODY_NONE, &face_steps, "ConsolePage",
		console_page_begin, NULL, NULL},
	{GET_HEAD, "/console/{file*}", NULL, ACCESS_ANYONE, BODY_NONE, &face_steps, "ConsoleFile",
		console_file_begin, NULL, NULL},
	{.pattern = NULL},
};
