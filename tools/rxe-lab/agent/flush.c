/* FLUSH over rxe: libibverbs 44 can post it in no way, but rxe's send queue is memory shared with
 * the kernel, of a published layout (rdma/rdma_user_rxe.h). So an RDMA WRITE is built there, found
 * by its wr_id, made a FLUSH, and only then shown to the kernel. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rdma/rdma_user_rxe.h>

#include "agent.h"

/* include/uapi/rdma/ib_user_verbs.h and rdma_user_rxe.h of Linux 6.3 and later. */
#define WR_FLUSH 14

struct flush {
	uint64_t remote_addr;
	uint32_t length;
	uint32_t rkey;
	uint8_t type;
	uint8_t level;
};

#define MARK 0x75727865666c7573ULL

static struct rxe_send_wqe *find_marked(void)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	struct rxe_send_wqe *found = NULL;
	unsigned long from, to;
	char line[512];

	while (maps && !found && fgets(line, sizeof line, maps)) {
		if (!strstr(line, "uverbs") || sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		for (unsigned long at = from; at + sizeof *found <= to; at += 8)
			if (*(uint64_t *)at == MARK)
				found = (struct rxe_send_wqe *)at;
	}
	if (maps)
		fclose(maps);
	return found;
}

void post_flush(struct ibv_qp *qp, const struct words *words)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	struct flush flush = {
		.remote_addr = number(words, "remote"),
		.length = (uint32_t)number(words, "length"),
		.rkey = (uint32_t)number(words, "rkey"),
		.type = (uint8_t)number(words, "type"),
		.level = (uint8_t)number(words, "level"),
	};
	unsigned flags = (unsigned)number_or(words, "flags", IBV_SEND_SIGNALED);
	uint64_t id = number(words, "id");
	struct rxe_send_wqe *wqe;

	ibv_wr_start(ex);
	ex->wr_id = MARK;
	ex->wr_flags = flags;
	ibv_wr_rdma_write(ex, flush.rkey, flush.remote_addr);
	ibv_wr_set_sge_list(ex, 0, NULL);
	wqe = find_marked();
	if (!wqe) {
		ibv_wr_abort(ex);
		errno = 0;
		fail("the request is not in the queue");
	}
	wqe->wr.wr_id = id;
	wqe->wr.opcode = WR_FLUSH;
	memcpy(&wqe->wr.wr, &flush, sizeof flush);
	/* What the RETH is made of. */
	wqe->iova = flush.remote_addr;
	wqe->dma.length = flush.length;
	wqe->dma.resid = flush.length;
	errno = ibv_wr_complete(ex);
	if (errno)
		fail("FLUSH");
	fputs("ok\n", answers);
}
