//! Programs inside trust the gateway, and nothing of that ends in what a sandbox is.

use std::fs;

use sandyard_core::SandboxId;
use sandyard_engine::{ForkSpec, SandboxSpec};

use crate::test_env::{TestEnv, ready, small};

const CERTIFICATE: &str = include_str!("../../src/trust/test_certificate.pem");
const OTHER: &str = include_str!("other.pem");

/// Gives the env a gateway's certificate, as the gateway would.
pub(crate) fn certify(env: &TestEnv, text: &str) {
    let folder = env.data.join("gateway");
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("new"), text).expect("write");
    fs::rename(folder.join("new"), folder.join("ca.pem")).expect("rename");
}

/// Checks that OpenSSL, and programs that read the list, trust that certificate and not the other.
pub(crate) async fn assert_trusts(env: &TestEnv, id: &SandboxId, certificate: &str) {
    let single = env.out(id, "cat /etc/ssl/certs/sandyard-gateway.pem").await;
    assert_eq!(single, certificate.trim_end());
    // By its hash, in the folder; and in the list, behind the host's own.
    let verify = "for where in '-no-CAfile -CApath /etc/ssl/certs' '-no-CApath -CAfile /etc/ssl/certs/ca-certificates.crt'; do openssl verify $where /etc/ssl/certs/sandyard-gateway.pem; done";
    assert_eq!(
        env.out(id, verify).await,
        "/etc/ssl/certs/sandyard-gateway.pem: OK\n/etc/ssl/certs/sandyard-gateway.pem: OK"
    );
    let list = env.out(id, "cat /etc/ssl/certs/ca-certificates.crt").await;
    let other = fs::read_to_string("/etc/ssl/certs/ca-certificates.crt").expect("the host's");
    assert_eq!(list, format!("{other}{}", certificate.trim_end()));
    assert_eq!(
        env.out(
            id,
            "echo $SSL_CERT_FILE $REQUESTS_CA_BUNDLE $NODE_EXTRA_CA_CERTS"
        )
        .await,
        "/etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/sandyard-gateway.pem"
    );
}

#[tokio::test]
async fn a_sandbox_trusts_the_gateway_and_its_maker_has_the_last_word() {
    let env = TestEnv::new().await;
    certify(&env, CERTIFICATE);
    let mut spec = small();
    let id = env.engine.create(&spec).await.expect("create").id;
    assert_trusts(&env, &id, CERTIFICATE).await;
    assert_eq!(
        env.out(
            &id,
            "stat -c '%U %G %a' /etc/ssl/certs /etc/ssl/certs/ca-certificates.crt"
        )
        .await,
        "root root 755\nroot root 644"
    );
    assert_eq!(
        env.out(
            &id,
            "node -e 'console.log(require(\"tls\").rootCertificates.length > 0)'"
        )
        .await,
        "true"
    );
    spec.env.insert("SSL_CERT_FILE".into(), "/mine".into());
    let other = env.engine.create(&spec).await.expect("create").id;
    assert_eq!(
        env.out(&other, "echo $SSL_CERT_FILE $NODE_EXTRA_CA_CERTS")
            .await,
        "/mine /etc/ssl/certs/sandyard-gateway.pem"
    );
    // A fork has its own variables, and these too.
    let fork = ForkSpec {
        env: Some([("A".to_owned(), "b".to_owned())].into()),
        ..ForkSpec::default()
    };
    let fork = env.engine.fork(&other, &fork).await.expect("fork").id;
    assert_trusts(&env, &fork, CERTIFICATE).await;
    // All of them stand on one layer: it is made of the list they have in common.
    let layers = fs::read_dir(env.data.join("trust")).expect("list").count();
    assert_eq!(layers, 1);
    env.finish().await;
}

#[tokio::test]
async fn without_a_gateway_there_is_nothing_to_trust() {
    let env = TestEnv::new().await;
    let id = env.create().await.id;
    assert_eq!(
        env.out(
            &id,
            "ls /etc/ssl/certs | grep -c sandyard; env | grep -c CERT"
        )
        .await,
        "0\n0"
    );
    env.finish().await;
}

#[tokio::test]
async fn the_certificate_is_no_change_of_a_sandboxs_and_in_no_snapshot() {
    let env = TestEnv::new().await;
    certify(&env, CERTIFICATE);
    let id = env.create().await.id;
    assert_eq!(env.engine.diff(&id).await.expect("diff").changes, []);
    // Directories on the way are copied up when something in them changes: they are as they were.
    env.sh_as(&id, "root", "touch /etc/ssl/certs/mine").await;
    let changes = env.engine.diff(&id).await.expect("diff").changes;
    let changed: Vec<_> = changes
        .iter()
        .map(|change| change.path.display().to_string())
        .collect();
    assert_eq!(changed, ["/etc/ssl/certs/mine"]);
    let snapshot = env.engine.snapshot(&id, "kept").await.expect("snapshot");
    assert!(
        !snapshot
            .layers()
            .any(|layer| layer.starts_with(env.data.join("trust"))),
        "{snapshot:?}"
    );
    // With another certificate, what comes after trusts that one and not the first.
    certify(&env, OTHER);
    let spec = SandboxSpec {
        template: "kept".into(),
        ..small()
    };
    let later = env.engine.create(&spec).await.expect("create").id;
    assert_trusts(&env, &later, OTHER).await;
    // What runs keeps what it has until it is started again.
    assert_trusts(&env, &id, CERTIFICATE).await;
    env.engine.sweep().await.expect("sweep");
    assert_trusts(&env, &id, CERTIFICATE).await;
    env.engine.stop(&id).await.expect("stop");
    env.engine.start(&id).await.expect("start");
    assert_trusts(&env, &id, OTHER).await;
    env.finish().await;
}

#[tokio::test]
async fn a_ready_sandbox_of_an_old_certificate_is_not_taken() {
    let env = TestEnv::new().await;
    let pool = vec![ready("host", 1)];
    env.engine.set_pool(pool.clone()).await.expect("fill");
    let spare = || {
        let mut spares = fs::read_dir(env.data.join("spares"))
            .expect("spares")
            .flatten();
        spares
            .next()
            .expect("one")
            .file_name()
            .into_string()
            .expect("UTF-8")
    };
    let old = spare();
    certify(&env, CERTIFICATE);
    let made = env.create().await.id;
    assert_ne!(made.as_str(), old);
    assert_trusts(&env, &made, CERTIFICATE).await;
    // The pool, asked again, keeps one that fits; and that one is adopted, with the variables of its new owner.
    env.engine.set_pool(pool).await.expect("fill");
    let ready = spare();
    assert_ne!(ready, old);
    let mut spec = small();
    spec.env.insert("WHO".into(), "me".into());
    let taken = env.engine.create(&spec).await.expect("create").id;
    assert_eq!(taken.as_str(), ready);
    assert_eq!(env.out(&taken, "echo $WHO").await, "me");
    assert_trusts(&env, &taken, CERTIFICATE).await;
    env.finish().await;
}

#[tokio::test]
async fn a_damaged_certificate_is_reported_and_the_sandbox_runs() {
    let env = TestEnv::new().await;
    certify(
        &env,
        "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n",
    );
    let info = env.create().await;
    assert!(
        info.limitations
            .iter()
            .any(|limitation| limitation.contains("holds no certificate")),
        "{:?}",
        info.limitations
    );
    assert_eq!(env.out(&info.id, "echo works").await, "works");
    env.finish().await;
}
