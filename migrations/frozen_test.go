package migrations

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

// landed are the SHA-256 of the migrations that databases have.
var landed = map[string]string{
	"00001_init.sql":             "61ced4bbf41f9c3d75f87094d2083d2aa054eb4133b7c0f9e919b2f4b7dad233",
	"00002_votes_and_grants.sql": "3b18d14d2b269de91776cf0e11bf2e2e6e57ad75d3d61f0c986100430b94d4e4",
	"00003_audit.sql":            "91533c6cabea724689d9a122d3f9802a5d5be960d747d1994ff3293d5cb613e0",
	"00004_river.go":             "2085611e8d9fe7e646c93973e9d28e739029e8a064d110ff5023c660ea5f9a74",
	"00005_rollups.sql":          "645ef0a9db99507f350fa0a75e6eba1b7f2dcf476fbe55d48af1c881afe28a43",
	"00006_budgets.sql":          "5eae61d8bea26dcdfe2c0d0eaec7d6356056299f10b411b5ebfd1630d38a1ff6",
	"00007_meter.sql":            "9f4f5f690b16f23be95f769b8a86109e92e0587d35ae177f6b39dff7a8a42adb",
	"00008_waits.sql":            "ab80c0df2e1b90a4012d4667d307966262da2a874dbdb74d0024c807965a6643",
	"00009_outbox.sql":           "415004163057633681f7505e866af0d4d7a86844e8a8d675593d200ba25c4009",
	"00010_inbox.sql":            "5e554d1aa70c4b93ad9922c9d8cc600e39172351e588b4d81b303157b332fe11",
	"00011_rests.sql":            "0ff88e11ab06387e76d53c71e78e94376573e0123da4e87f42cac2ffe8ae89eb",
	"00012_transcripts.sql":      "c89b0c9c210303e78c88fb1518d6f99ce3da0a4495b77fc85a237518193d6c41",
	"00013_work.sql":             "2614ff4c2e3969d812d93570b89a62c6b5cfb741d0e902648d7c81a481c6eabd",
	"00014_replicas.sql":         "569c6758b0e838247efdc23096768bba2dda0f7210ec3ee523edd581ad1e398d",
	"00015_looks.sql":            "c0727c5a623c2a91230d576126910644d6c4a48fd6219b15bfb0e9715ff202ff",
	"00016_retention.sql":        "c6c0db4653dc805a538f5660d55ce9987e881080af7f566efb89ebe80bfecd4d",
	"00017_replicas.sql":         "3ce268acdf2f81af440a84901c94a9662132ff738c8b3c9d6361f07face9d705",
	"00019_urgent_by.sql":        "acd148dc59dffb2a5670fb7ad0e0cdc2dd87799b47438ea7d9850ba21a2584ea",
	"00020_titles.sql":           "9d14354a0e4a341127edf61f43d9ade0e5654b6f574cff28fa058df9706c7716",
	"00023_feedback.sql":         "ddb25324c35062112eac7bf8af10d48619bd9a11303a61637502369371aa590a",
	"00021_files.sql":            "968cd67e29326d3752244ae5e29e44b2618ccf67efc2219b2a23c4ec140d6a50",
	"00022_changed_inputs.sql":   "853583cf110d051fea28e63b4d467be93be4d0a7cb490a655b7f732b922dceba",
	"00024_said.sql":             "3c2841a796a0825d1fcee9877346b0911649f30f03363b5b3d20ebc462491101",
	"00025_pushes.sql":           "03a3c59db304edc66c8807ead8ff68790da91a4245a72e8a25f03156ce6fdbec",
	"00026_posts.sql":            "9bc7a1a94e31e81465d17c043bdd487810d9449d55309094e64c3432e7f624ba",
	"00029_connections.sql":      "ec4dd4832c9d51b514fbeb88106a2e0b8aa3a010c7f490ecc0cabdd2d38693f8",
	"00028_steering.sql":         "6f936b48627efff10fb6bf91e74b10b2deaf365d2e6f9e3fa1f976234515bb73",
	"00018_card_copies.sql":      "ac7cb07a1976cd7527282177016e0faf1fc3e71579dd8487d7e31f05e8dfd68f",
	"00030_branches.sql":         "b0dd4ad1c03a417d841d2807704809bca6b398b921d4b2dab5fded107dbefaec",
	"00031_diffs.sql":            "1d29df0519a01351ddbfa123af577659fb50f10c0ab02ffa0e5a37d20fe10aa8",
	"00032_merging.sql":          "4d530390e820bf40c3f8933a86366859eaaa5b8bc9503e63fa766e492fad26d7",
	"00033_mcp.sql":              "db3d5a707142d39c852605893876b7d778a76a48dd85a8311cc0612129cd821a",
	"00034_forks.sql":            "7205b2887ff1a83d7b1e00bd205da18a989d6b5ff75bd2dbc6c8af7d99c7208a",
	"00035_bindings.sql":         "7449ae7506ef65ea4cd61b15517ba5c20c3bd9f5ecb968fc01e8aba981fa98a0",
	"00036_mcp_tools.sql":        "59f82d2df71d2be8725b850f2f95eb42ed7d40bb4a479714a6db58075d6dfd29",
	"00037_trust.sql":            "2e58584e7fdcb883895310a83893154b3bd239b2d1211650526b352b2000d8a8",
	"00038_repositories.sql":     "d4a178c56f5ac1fc824a1a47f65fa6832e3617687b972827d0918e889732a3fa",
	"00039_rewind.sql":           "b57d08e0182e9ca759b646c183dc86d4c18464ae9625c8dd0fd9814203c92c2c",
	"00040_admins.sql":           "398a5921720c3bc2b242d2337d6bf5186eeb324e31f184877a2c28159adc56d0",
	"00041_continue.sql":         "bc56bf609470add3f0f9e5162a5aedf40f13be2592b8aebfac243e9c93db11f7",
	"00027_pulls.sql":            "439b16744c076138ec8201577e4eb391732cfaf4e2dd17dab576b3974aedc80e",
}

// TestALandedMigrationNeverChanges. When this is red for a file that is in the list,
// restore that file and write what you want as a new migration with the next number;
// when it is red for a file that is not, add its line.
func TestALandedMigrationNeverChanges(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("[0-9]*_*")
	if err != nil {
		t.Fatal(err)
	}
	are := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(b)
		are[f] = hex.EncodeToString(sum[:])
	}
	if diff := cmp.Diff(landed, are); diff != "" {
		t.Errorf("migrations (-landed +here): restore what has landed, and add a new migration instead:\n%s", diff)
	}
}

// TestRiversTablesAreWhatThisRiverNeeds. When this is red after River was updated, add
// a migration like 00004_river.go that goes to River's newest version.
func TestRiversTablesAreWhatThisRiverNeeds(t *testing.T) {
	t.Parallel()
	m, err := rivermigrate.New(riverpgxv5.New(nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	all := m.AllVersions()
	if newest := all[len(all)-1].Version; newest != 8 {
		t.Errorf("River needs its version %d, and our migrations stop at 8", newest)
	}
}
