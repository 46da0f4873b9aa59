/* What ended ingests leave for the next: blocks and drains, whose pages are there already. Up to 24
 * MiB in all. Internally locked. Where a call takes NULL for them, nothing is kept. */
#ifndef STORAGE_INGEST_INGEST_SPARES_H
#define STORAGE_INGEST_INGEST_SPARES_H

struct ingest_spares;
struct ingest_block;
struct ingest_drain;

struct ingest_spares *ingest_spares_new(void);
void ingest_spares_free(struct ingest_spares *spares); /* NULL is fine */
/* One left over, else a new one; `spares` may be NULL, here and below. Its bytes are whatever they
 * were, a drain's buffer is empty; the other fields are the caller's to set. */
struct ingest_block *ingest_spares_take_block(struct ingest_spares *spares);
struct ingest_drain *ingest_spares_take_drain(struct ingest_spares *spares);
/* NULL is fine. */
void ingest_spares_give_block(struct ingest_spares *spares, struct ingest_block *block);
void ingest_spares_give_drain(struct ingest_spares *spares, struct ingest_drain *drain);

#endif
