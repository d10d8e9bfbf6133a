/* Objects of verbs: making, changing and ending them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "agent.h"

static struct ibv_context *device;

static struct ibv_pd *pds[MAX_OBJECTS];
static struct region regions[MAX_OBJECTS];
static struct ibv_mw *mws[MAX_OBJECTS];
static struct ibv_cq *cqs[MAX_OBJECTS];
static struct ibv_srq *srqs[MAX_OBJECTS];
static struct ibv_ah *ahs[MAX_OBJECTS];
static struct ibv_qp *qps[MAX_OBJECTS];
static int pd_count, region_count, mw_count, cq_count, srq_count, ah_count, qp_count;

static struct ibv_context *open_device(void)
{
	struct ibv_device **list;

	if (device)
		return device;
	list = ibv_get_device_list(NULL);
	if (!list || !list[0])
		fail("there is no RDMA device");
	device = ibv_open_device(list[0]);
	if (!device)
		fail("%s cannot be opened", ibv_get_device_name(list[0]));
	return device;
}

static int slot(int *count, const char *kind)
{
	errno = 0;
	if (*count == MAX_OBJECTS)
		fail("more than %d %ss", MAX_OBJECTS, kind);
	return (*count)++;
}

static void *object(void **objects, int count, const char *key, uint64_t index)
{
	errno = 0;
	if (index >= (uint64_t)count || !objects[index])
		fail("there is no %s %llu", key, (unsigned long long)index);
	return objects[index];
}

#define OBJECT(array, count, words, key) object((void **)(array), count, key, number(words, key))

struct region *region_at(uint64_t index)
{
	errno = 0;
	if (index >= (uint64_t)region_count || !regions[index].memory)
		fail("there is no mr %llu", (unsigned long long)index);
	return &regions[index];
}

struct region *region_of(const struct words *words, const char *key)
{
	return region_at(number(words, key));
}

struct ibv_qp *qp_of(const struct words *words) { return OBJECT(qps, qp_count, words, "qp"); }
struct ibv_srq *srq_of(const struct words *words) { return OBJECT(srqs, srq_count, words, "srq"); }
struct ibv_mw *mw_of(const struct words *words) { return OBJECT(mws, mw_count, words, "mw"); }
struct ibv_ah *ah_of(const struct words *words) { return OBJECT(ahs, ah_count, words, "ah"); }
struct ibv_cq *cq_of(const struct words *words, const char *key)
{
	return OBJECT(cqs, cq_count, words, key);
}

void do_pd(const struct words *words)
{
	int n = slot(&pd_count, "pd");

	(void)words;
	pds[n] = ibv_alloc_pd(open_device());
	if (!pds[n])
		fail("ibv_alloc_pd");
	fprintf(answers, "ok pd=%d\n", n);
}

/* Rights are passed as they are: those for FLUSH have no names in libibverbs 44. */
void do_mr(const struct words *words)
{
	struct ibv_pd *pd = OBJECT(pds, pd_count, words, "pd");
	size_t length = number(words, "length");
	int n = slot(&region_count, "mr");
	uint8_t *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			       -1, 0);

	if (memory == MAP_FAILED)
		fail("%zu bytes", length);
	regions[n].memory = memory;
	regions[n].length = length;
	regions[n].mr = (ibv_reg_mr)(pd, memory, length, (int)number(words, "access"));
	if (!regions[n].mr)
		fail("ibv_reg_mr");
	fprintf(answers, "ok mr=%d addr=0x%llx lkey=0x%x rkey=0x%x\n", n,
		(unsigned long long)(uintptr_t)memory, regions[n].mr->lkey, regions[n].mr->rkey);
}

void do_mw(const struct words *words)
{
	struct ibv_pd *pd = OBJECT(pds, pd_count, words, "pd");
	int n = slot(&mw_count, "mw");

	mws[n] = ibv_alloc_mw(pd, (enum ibv_mw_type)number(words, "type"));
	if (!mws[n])
		fail("ibv_alloc_mw");
	fprintf(answers, "ok mw=%d rkey=0x%x\n", n, mws[n]->rkey);
}

void do_cq(const struct words *words)
{
	int n = slot(&cq_count, "cq");

	cqs[n] = ibv_create_cq(open_device(), (int)number(words, "size"), NULL, NULL, 0);
	if (!cqs[n])
		fail("ibv_create_cq");
	fprintf(answers, "ok cq=%d\n", n);
}

void do_srq(const struct words *words)
{
	struct ibv_pd *pd = OBJECT(pds, pd_count, words, "pd");
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = number(words, "size"), .max_sge = number_or(words, "sges", 4) },
	};
	int n = slot(&srq_count, "srq");

	srqs[n] = ibv_create_srq(pd, &init);
	if (!srqs[n])
		fail("ibv_create_srq");
	fprintf(answers, "ok srq=%d\n", n);
}

/* The index of one of our addresses. */
static uint8_t gid_index(const struct words *words)
{
	const char *address = text(words, "sgid");
	union ibv_gid wanted = gid_of(address), gid;

	for (int i = 0; i < 32; i++)
		if (!ibv_query_gid(open_device(), 1, i, &gid) && !memcmp(&gid, &wanted, sizeof gid))
			return (uint8_t)i;
	errno = 0;
	fail("%s is none of our GIDs", address);
}

static struct ibv_ah_attr address_of(const struct words *words)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.sl = number_or(words, "sl", 0),
		.grh = {
			.dgid = gid_of(text(words, "dgid")),
			.sgid_index = gid_index(words),
			.hop_limit = number_or(words, "hops", 64),
			.traffic_class = number_or(words, "class", 0),
			.flow_label = number_or(words, "flow", 0),
		},
	};
}

void do_ah(const struct words *words)
{
	struct ibv_pd *pd = OBJECT(pds, pd_count, words, "pd");
	struct ibv_ah_attr attr = address_of(words);
	int n = slot(&ah_count, "ah");

	ahs[n] = ibv_create_ah(pd, &attr);
	if (!ahs[n])
		fail("ibv_create_ah");
	fprintf(answers, "ok ah=%d\n", n);
}

/* All that a QP of its type can be asked for by ibv_wr_*: FLUSH is posted that way. */
static uint64_t operations_of(enum ibv_qp_type type)
{
	uint64_t all = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM;

	if (type == IBV_QPT_UD)
		return all;
	all |= IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
	       IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV;
	if (type == IBV_QPT_UC)
		return all;
	return all | IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
	       IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
	       IBV_QP_EX_WITH_ATOMIC_WRITE;
}

void do_qp(const struct words *words)
{
	struct ibv_pd *pd = OBJECT(pds, pd_count, words, "pd");
	const char *type = text(words, "type");
	struct ibv_qp_init_attr_ex init = {
		.qp_type = !strcmp(type, "rc") ? IBV_QPT_RC : !strcmp(type, "uc") ? IBV_QPT_UC
									   : IBV_QPT_UD,
		.sq_sig_all = (int)number_or(words, "sig_all", 1),
		.send_cq = cq_of(words, "cq"),
		.recv_cq = cq_of(words, text_or_null(words, "recv_cq") ? "recv_cq" : "cq"),
		.srq = text_or_null(words, "srq") ? srq_of(words) : NULL,
		.cap = {
			.max_send_wr = number_or(words, "sends", 128),
			.max_recv_wr = number_or(words, "recvs", 128),
			.max_send_sge = number_or(words, "sges", 4),
			.max_recv_sge = number_or(words, "sges", 4),
			.max_inline_data = number_or(words, "inline", 64),
		},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
	};
	int n = slot(&qp_count, "qp");

	init.send_ops_flags = operations_of(init.qp_type);
	qps[n] = ibv_create_qp_ex(open_device(), &init);
	if (!qps[n])
		fail("ibv_create_qp_ex");
	fprintf(answers, "ok qp=%d qpn=%u\n", n, qps[n]->qp_num);
}

static int states(const char *name)
{
	static const char *const names[] = { "reset", "init", "rtr", "rts", "sqd", "sqe", "err" };

	for (int i = 0; i < 7; i++)
		if (!strcmp(name, names[i]))
			return i;
	errno = 0;
	fail("%s is no state", name);
}

/* Sets what its words name, and nothing else. */
void do_modify(const struct words *words)
{
	struct ibv_qp *qp = qp_of(words);
	struct ibv_qp_attr attr = { 0 };
	int mask = 0;

#define SET(key, field, bit) \
	do { \
		if (text_or_null(words, key)) { \
			attr.field = number(words, key); \
			mask |= bit; \
		} \
	} while (0)

	if (text_or_null(words, "state")) {
		attr.qp_state = (enum ibv_qp_state)states(text(words, "state"));
		mask |= IBV_QP_STATE;
	}
	SET("pkey", pkey_index, IBV_QP_PKEY_INDEX);
	SET("port", port_num, IBV_QP_PORT);
	SET("access", qp_access_flags, IBV_QP_ACCESS_FLAGS);
	SET("qkey", qkey, IBV_QP_QKEY);
	SET("mtu", path_mtu, IBV_QP_PATH_MTU);
	SET("dest", dest_qp_num, IBV_QP_DEST_QPN);
	SET("rq_psn", rq_psn, IBV_QP_RQ_PSN);
	SET("sq_psn", sq_psn, IBV_QP_SQ_PSN);
	SET("max_rd", max_rd_atomic, IBV_QP_MAX_QP_RD_ATOMIC);
	SET("max_dest_rd", max_dest_rd_atomic, IBV_QP_MAX_DEST_RD_ATOMIC);
	SET("min_rnr", min_rnr_timer, IBV_QP_MIN_RNR_TIMER);
	SET("timeout", timeout, IBV_QP_TIMEOUT);
	SET("retry", retry_cnt, IBV_QP_RETRY_CNT);
	SET("rnr_retry", rnr_retry, IBV_QP_RNR_RETRY);
	if (text_or_null(words, "dgid")) {
		attr.ah_attr = address_of(words);
		mask |= IBV_QP_AV;
	}
	errno = ibv_modify_qp(qp, &attr, mask);
	if (errno)
		fail("ibv_modify_qp");
	fputs("ok\n", answers);
}

void do_query(const struct words *words)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	errno = ibv_query_qp(qp_of(words), &attr, IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RQ_PSN, &init);
	if (errno)
		fail("ibv_query_qp");
	fprintf(answers, "ok state=%d sq_psn=%u rq_psn=%u\n", attr.qp_state, attr.sq_psn,
		attr.rq_psn);
}

void do_attach(const struct words *words)
{
	union ibv_gid group = gid_of(text(words, "group"));

	errno = ibv_attach_mcast(qp_of(words), &group, 0);
	if (errno)
		fail("ibv_attach_mcast");
	fputs("ok\n", answers);
}

/* Ends a QP, or a region's registration (its memory stays to be looked at). */
void do_destroy(const struct words *words)
{
	if (text_or_null(words, "qp")) {
		errno = ibv_destroy_qp(qp_of(words));
		if (errno)
			fail("ibv_destroy_qp");
		qps[number(words, "qp")] = NULL;
	} else {
		struct region *region = region_of(words, "mr");

		errno = ibv_dereg_mr(region->mr);
		if (errno)
			fail("ibv_dereg_mr");
		region->mr = NULL;
	}
	fputs("ok\n", answers);
}
