#include "library/deltabucket.h"

const char *deltabucket_version(void)
{
	return PACKAGE_VERSION;
}
