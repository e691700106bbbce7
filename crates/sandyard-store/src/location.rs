//! Renames a location.

use crate::error::Result;
use crate::sql::sql;
use crate::store::Store;

impl Store {
    /// Moves snapshots and volumes from one name of a location to another, so that their owners keep them. The service moves sandboxes one
    /// by one, under their claims. Snapshots that exist under the new name stay unchanged.
    pub async fn rename_location(&self, from: &str, to: &str) -> Result<()> {
        let mut writer = self.db.writer("renaming a location").await?;
        let mut tx = writer.begin().await?;
        let aliases = sql(
            "UPDATE snapshots SET alias = NULL WHERE location = $1 AND EXISTS \
             (SELECT 1 FROM snapshots AS there WHERE there.location = $2 \
             AND there.owner = snapshots.owner AND there.alias = snapshots.alias)",
        );
        tx.execute(aliases.text(from).text(to)).await?;
        let snapshots = sql(
            "UPDATE snapshots SET location = $2 WHERE location = $1 AND NOT EXISTS \
             (SELECT 1 FROM snapshots AS there WHERE there.location = $2 AND there.name = snapshots.name)",
        );
        tx.execute(snapshots.text(from).text(to)).await?;
        let volumes = sql("UPDATE volumes SET location = $2 WHERE location = $1");
        tx.execute(volumes.text(from).text(to)).await?;
        tx.commit().await
    }
}
