/* Work requests and completions. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent.h"

#define MAX_SGES 16

/* sge=MR:OFFSET:LENGTH, any number of them, in order. */
static int sges_of(const struct words *words, struct ibv_sge *sges)
{
	unsigned long long mr, offset, length;
	int count = 0;

	for (int i = 1; i < words->count; i++) {
		if (strncmp(words->word[i], "sge=", 4))
			continue;
		errno = 0;
		if (count == MAX_SGES)
			fail("more than %d SGEs", MAX_SGES);
		if (sscanf(words->word[i] + 4, "%llu:%llu:%llu", &mr, &offset, &length) != 3)
			fail("%s is not sge=MR:OFFSET:LENGTH", words->word[i]);
		struct region *region = region_at(mr);
		sges[count++] = (struct ibv_sge){
			.addr = (uintptr_t)region->memory + offset,
			.length = (uint32_t)length,
			.lkey = region->mr ? region->mr->lkey : 0,
		};
	}
	return count;
}

static const struct operation {
	const char *name;
	enum ibv_wr_opcode opcode;
} operations[] = {
	{ "send", IBV_WR_SEND },
	{ "send_imm", IBV_WR_SEND_WITH_IMM },
	{ "send_inv", IBV_WR_SEND_WITH_INV },
	{ "write", IBV_WR_RDMA_WRITE },
	{ "write_imm", IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "read", IBV_WR_RDMA_READ },
	{ "cas", IBV_WR_ATOMIC_CMP_AND_SWP },
	{ "faa", IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ "local_inv", IBV_WR_LOCAL_INV },
	{ "bind", IBV_WR_BIND_MW },
};

static void fill(struct ibv_send_wr *wr, struct ibv_qp *qp, const struct words *words)
{
	uint64_t remote = number_or(words, "remote", 0);
	uint32_t rkey = number_or(words, "rkey", 0);

	switch (wr->opcode) {
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		wr->invalidate_rkey = rkey;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr->wr.atomic.remote_addr = remote;
		wr->wr.atomic.rkey = rkey;
		wr->wr.atomic.compare_add = number(words, "compare_add");
		wr->wr.atomic.swap = number_or(words, "swap", 0);
		break;
	case IBV_WR_BIND_MW: {
		struct region *region = region_of(words, "mr");

		wr->bind_mw.mw = mw_of(words);
		wr->bind_mw.rkey = rkey;
		wr->bind_mw.bind_info = (struct ibv_mw_bind_info){
			.mr = region->mr,
			.addr = (uintptr_t)region->memory + number_or(words, "offset", 0),
			.length = number(words, "length"),
			.mw_access_flags = (unsigned)number(words, "access"),
		};
		break;
	}
	default:
		wr->imm_data = htonl((uint32_t)number_or(words, "imm", 0));
		if (qp->qp_type == IBV_QPT_UD) {
			wr->wr.ud.ah = ah_of(words);
			wr->wr.ud.remote_qpn = number(words, "dest");
			wr->wr.ud.remote_qkey = number(words, "qkey");
		} else {
			wr->wr.rdma.remote_addr = remote;
			wr->wr.rdma.rkey = rkey;
		}
	}
}

/* libibverbs has it only as ibv_wr_atomic_write. */
static void post_atomic_write(struct ibv_qp *qp, const struct words *words)
{
	struct region *region = region_of(words, "mr");
	uint64_t id = number(words, "id"), remote = number(words, "remote");
	uint64_t offset = number_or(words, "offset", 0);
	uint32_t rkey = (uint32_t)number(words, "rkey");
	unsigned flags = (unsigned)number_or(words, "flags", IBV_SEND_SIGNALED);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);

	/* From here to the end the queue is locked: nothing may fail. */
	ibv_wr_start(ex);
	ex->wr_id = id;
	ex->wr_flags = flags;
	ibv_wr_atomic_write(ex, rkey, remote, region->memory + offset);
	errno = ibv_wr_complete(ex);
	if (errno)
		fail("ibv_wr_atomic_write");
	fputs("ok\n", answers);
}

void do_send(const struct words *words)
{
	struct ibv_qp *qp = qp_of(words);
	const char *op = text(words, "op");
	struct ibv_sge sges[MAX_SGES];
	struct ibv_send_wr wr = { .wr_id = number(words, "id") }, *bad;
	int known = -1;

	if (!strcmp(op, "flush")) {
		post_flush(qp, words);
		return;
	}
	if (!strcmp(op, "atomic_write")) {
		post_atomic_write(qp, words);
		return;
	}
	for (size_t i = 0; i < sizeof operations / sizeof *operations; i++)
		if (!strcmp(op, operations[i].name))
			known = (int)i;
	errno = 0;
	if (known < 0)
		fail("%s is no operation", op);
	wr.opcode = operations[known].opcode;
	wr.send_flags = (unsigned)number_or(words, "flags", IBV_SEND_SIGNALED);
	wr.sg_list = sges;
	wr.num_sge = sges_of(words, sges);
	fill(&wr, qp, words);
	errno = ibv_post_send(qp, &wr, &bad);
	if (errno)
		fail("ibv_post_send");
	fputs("ok\n", answers);
}

void do_recv(const struct words *words)
{
	struct ibv_sge sges[MAX_SGES];
	struct ibv_recv_wr wr = { .wr_id = number(words, "id"), .sg_list = sges }, *bad;

	wr.num_sge = sges_of(words, sges);
	if (text_or_null(words, "srq"))
		errno = ibv_post_srq_recv(srq_of(words), &wr, &bad);
	else
		errno = ibv_post_recv(qp_of(words), &wr, &bad);
	if (errno)
		fail("posting a receive");
	fputs("ok\n", answers);
}

/* rxe hands the kernel's flags to programs, where this one has another value (1 << 2; in libibverbs
 * that is IBV_WC_IP_CSUM_OK, which rxe never means). */
#define KERNEL_WITH_INVALIDATE 4

static void show(const struct ibv_wc *wc)
{
	unsigned flags = wc->wc_flags;
	uint32_t extra = ntohl(wc->imm_data);

	if (flags & (KERNEL_WITH_INVALIDATE | IBV_WC_WITH_INV)) {
		flags = (flags & ~KERNEL_WITH_INVALIDATE) | IBV_WC_WITH_INV;
		extra = wc->invalidated_rkey;
	}

	/* Past an error only the first two count; what else they hold is left out. */
	if (wc->status) {
		fprintf(answers, " wc=%llu,%d,0,0,0,0,%u,0", (unsigned long long)wc->wr_id,
			wc->status, wc->qp_num);
		return;
	}
	fprintf(answers, " wc=%llu,%d,%d,%u,%u,%u,%u,%u", (unsigned long long)wc->wr_id, wc->status,
		wc->opcode, wc->byte_len, flags, extra, wc->qp_num, wc->src_qp);
}

static uint64_t milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* Waits for COUNT completions, at most MS milliseconds; gives those that came. */
void do_poll(const struct words *words)
{
	struct ibv_cq *cq = cq_of(words, "cq");
	uint64_t wanted = number_or(words, "count", 1);
	uint64_t end = milliseconds() + number_or(words, "ms", 0), got = 0;
	struct timespec pause = { .tv_nsec = 300000 };
	struct ibv_wc wc;

	fputs("ok", answers);
	while (got < wanted) {
		int n = ibv_poll_cq(cq, 1, &wc);

		if (n < 0)
			break;
		if (n) {
			show(&wc);
			got++;
		} else if (milliseconds() >= end) {
			break;
		} else {
			nanosleep(&pause, NULL);
		}
	}
	fprintf(answers, " count=%llu\n", (unsigned long long)got);
}
