//! The statements whose privileges are checked: all others are the superusers' alone.

use syntax::postgres::tree::{ObjectName, ObjectType, Statement};

/// Returns whether an object of a statement has an owner that is checked.
fn has_owner(object: &ObjectName) -> bool {
    matches!(
        object,
        ObjectName::Relation(..)
            | ObjectName::OnRelation(ObjectType::Constraint, ..)
            | ObjectName::Qualified(ObjectType::Column, _)
            | ObjectName::Plain(ObjectType::Schema | ObjectType::Database | ObjectType::Role, _)
    )
}

/// Returns whether each part of a statement checks what the role may do. A statement that is new here is not among them.
pub fn is_guarded(statement: &Statement) -> bool {
    match statement {
        Statement::Select(_)
        | Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Merge(_)
        | Statement::Truncate(_)
        | Statement::Copy(_)
        | Statement::CreateTable(_)
        | Statement::CreateTableAs(_)
        | Statement::CreateIndex(_)
        | Statement::CreateSequence(_)
        | Statement::CreateView(_)
        | Statement::CreateSchema(_)
        | Statement::CreateDatabase(_)
        | Statement::CreateRole(_)
        | Statement::AlterTable(_)
        | Statement::AlterSequence(_)
        | Statement::AlterRole(_)
        | Statement::AlterDefaultPrivileges(_)
        | Statement::AlterRoleSet(_)
        | Statement::AlterDatabaseSet(_)
        | Statement::DropDatabase(_)
        | Statement::DropRole(_)
        | Statement::DropOwned(_)
        | Statement::ReassignOwned(_)
        | Statement::Grant(_)
        | Statement::GrantRole(_)
        | Statement::Transaction(_)
        | Statement::Set(_)
        | Statement::Show(_)
        | Statement::SetConstraints(_)
        | Statement::Discard(_)
        | Statement::Prepare(_)
        | Statement::Execute(_)
        | Statement::Deallocate(_)
        | Statement::DeclareCursor(_)
        | Statement::Fetch(_)
        | Statement::ClosePortal(_)
        | Statement::Lock(_)
        | Statement::Listen(_)
        | Statement::Unlisten(_)
        | Statement::Notify(_)
        | Statement::Explain(_)
        | Statement::RefreshMaterializedView(_)
        | Statement::Vacuum(_)
        | Statement::Reindex(_)
        | Statement::Checkpoint => true,
        Statement::Drop(drop) => drop.objects.iter().all(has_owner),
        Statement::Comment(comment) => has_owner(&comment.object),
        Statement::AlterOwner(alter) => has_owner(&alter.object),
        Statement::Rename(rename) => has_owner(&rename.object),
        Statement::AlterObjectSchema(alter) => has_owner(&alter.object),
        _ => false,
    }
}
