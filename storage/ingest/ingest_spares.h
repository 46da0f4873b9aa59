/* Memory that ended ingests leave for later ones: blocks and drains, whose pages are mapped
 * already. Up to 24 MiB in all. Internally locked. Functions that take NULL for the spares keep
 * nothing. */
#ifndef STORAGE_INGEST_INGEST_SPARES_H
#define STORAGE_INGEST_INGEST_SPARES_H

struct ingest_spares;
struct ingest_block;
struct ingest_drain;

struct ingest_spares *ingest_spares_new(void);
void ingest_spares_free(struct ingest_spares *spares); /* NULL is fine */
/* A spare one or a new one; `spares` may be NULL, here and below. The bytes of a block are
 * undefined and the buffer of a drain is empty. The caller sets the other fields. */
struct ingest_block *ingest_spares_take_block(struct ingest_spares *spares);
struct ingest_drain *ingest_spares_take_drain(struct ingest_spares *spares);
/* NULL is fine. */
void ingest_spares_give_block(struct ingest_spares *spares, struct ingest_block *block);
void ingest_spares_give_drain(struct ingest_spares *spares, struct ingest_drain *drain);

#endif
