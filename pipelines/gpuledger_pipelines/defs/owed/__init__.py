"""Who was owed how much: entitlement, demand, owed and delivered."""
