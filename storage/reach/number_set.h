/* A set of numbers that grows by additions and is sorted when it is read. One thread. */
#ifndef STORAGE_REACH_NUMBER_SET_H
#define STORAGE_REACH_NUMBER_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct number_set { /* begin with zeros */
	int64_t *numbers;
	size_t count;
	size_t capacity;
};
void number_set_add(struct number_set *set, int64_t number);
/* Sorts the numbers, and keeps each once. */
void number_set_settle(struct number_set *set);
/* Only after number_set_settle, with nothing added since. */
bool number_set_has(const struct number_set *set, int64_t number);
void number_set_release(struct number_set *set);

#endif
