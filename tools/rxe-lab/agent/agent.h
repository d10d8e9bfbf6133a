/* What the files of the agent share. */
#ifndef AGENT_H
#define AGENT_H

#include "words.h"

/* The objects of a session, by the number that its requests name them with. They end with the
 * session's process. */
#define MAX_OBJECTS 2048

struct region {
	struct ibv_mr *mr;
	uint8_t *memory;
	size_t length;
};

struct region *region_of(const struct words *words, const char *key);
struct region *region_at(uint64_t index);
struct ibv_qp *qp_of(const struct words *words);
struct ibv_cq *cq_of(const struct words *words, const char *key);
struct ibv_srq *srq_of(const struct words *words);
struct ibv_mw *mw_of(const struct words *words);
struct ibv_ah *ah_of(const struct words *words);

/* One function a verb; each writes its answer or fails. */
void do_pd(const struct words *words);
void do_mr(const struct words *words);
void do_mw(const struct words *words);
void do_cq(const struct words *words);
void do_srq(const struct words *words);
void do_ah(const struct words *words);
void do_qp(const struct words *words);
void do_modify(const struct words *words);
void do_query(const struct words *words);
void do_attach(const struct words *words);
void do_destroy(const struct words *words);

void do_send(const struct words *words);
void do_recv(const struct words *words);
void do_poll(const struct words *words);

void do_fill(const struct words *words);
void do_check(const struct words *words);
void do_read(const struct words *words);
void do_write(const struct words *words);

/* Sends a datagram to a peer's RoCEv2 port, as it is given. */
void do_packet(const struct words *words);

/* Posts a FLUSH, which libibverbs 44 has no call for. */
void post_flush(struct ibv_qp *qp, const struct words *words);

#endif
