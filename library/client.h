/* What a struct deltabucket_client is made of. It never changes after deltabucket_client_new. */
#ifndef LIBRARY_CLIENT_H
#define LIBRARY_CLIENT_H

#include "library/deltabucket.h"

struct deltabucket_client {
	char *endpoint;
	char *token; /* NULL: none, as with ca */
	char *ca;
	unsigned retries;  /* tries after the first */
	unsigned parallel; /* transfers at a time; 0: the default */
	unsigned threads;  /* that compute; 0: one per core */
};

#endif
